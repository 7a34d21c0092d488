// The common part of storages on a node's own disks: the record in the pool's `.sluice` directory,
// and taking the lock from another gateway of the node.
#pragma once

#include <memory>
#include <string>

#include "base/limits.h"
#include "control/local/pool_directory.h"
#include "control/local/record_file.h"
#include "control/volume/volume_storage.h"

namespace sluice::control {

class NodeStorage : public VolumeStorage {
 public:
  Result<std::optional<Record>> record() override { return record_.read(); }
  Result<Claim> claim(const Record& record, Outlasts outlasts) override {
    const Result<void> claimed = record_.claim(record, outlasts);
    if (!claimed) return Error{claimed.error()};
    return Claim::kDone;
  }
  void update(const Record& record, std::function<void(Result<void>)> done) override {
    done(record_.update(record));
  }
  bool reserves_room() const override { return true; }
  Result<Room> reserve(const Record& record) override {
    const Result<bool> reserved = record_.reserve(record);
    if (!reserved) return Error{reserved.error()};
    return reserved.value() ? Room::kMade : Room::kNone;
  }
  HolderAnswer ask(const Record& record, uint64_t order) override {
    return ask_holder(home_->records(), record.holder, volume_, order, limits::kHolderPatience);
  }
  Result<void> kill(const Record& record) override {
    return kill_holder(record.holder, home_->self());
  }
  Holder self() const override { return home_->self(); }

 protected:
  // `home` has the records.
  NodeStorage(std::shared_ptr<const PoolDirectory> home, std::string volume)
      : home_(std::move(home)),
        volume_(std::move(volume)),
        record_(home_->records(), volume_, home_->path() + "/.sluice/" + volume_ + ".volume") {}

  const PoolDirectory& home() const { return *home_; }

 private:
  const std::shared_ptr<const PoolDirectory> home_;
  const std::string volume_;
  const RecordFile record_;
};

}  // namespace sluice::control
