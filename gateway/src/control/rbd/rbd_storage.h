// The image of a volume, opened and locked by the pool's recorded client, with the record beside it
// (record_object.h). Threads of rbd::ceph_executor() make all calls to Ceph, for many volumes in
// parallel.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "control/volume/volume_storage.h"
#include "control_rbd/open_images.h"
#include "control_rbd/pool_client.h"
#include "control_rbd/record_object.h"
#include "rbd/served_image.h"

namespace sluice::control {

class RbdStorage final : public VolumeStorage,
                         public ImageHolder,
                         public std::enable_shared_from_this<RbdStorage> {
 public:
  RbdStorage(std::shared_ptr<PoolClient> client, std::shared_ptr<OpenImages> images,
             const wire::DesiredVolume& volume, std::function<void()> wake);

  // --- VolumeStorage
  Opened open(const wire::DesiredVolume& volume) override;
  Result<std::optional<Record>> record() override;
  Result<Claim> claim(const Record& record, Outlasts outlasts) override;
  void update(const Record& record, std::function<void(Result<void>)> done) override;
  Result<Growth> grow(uint64_t bytes) override;
  HolderAnswer ask(const Record&, uint64_t) override { return {}; }
  Result<void> kill(const Record& record) override;
  Holder self() const override { return pool_client_->self(); }
  int64_t allocated_bytes() const override { return 0; }
  // Another gateway may have owned the volume meanwhile.
  bool record_suffices() const override { return false; }
  std::string lost() const override;
  void begin_close() override;
  bool is_closed() const override;

  // --- ImageHolder
  void wake() override;
  std::shared_ptr<rbd::ServedImage> image() const override;
  bool leaving() const override;
  void fence(const rbd::RadosClient& client) override;

 private:
  // The result of an opening.
  struct Opening {
    uint64_t order = 0;
    std::string problem;  // empty: success
  };
  void open_now(const std::shared_ptr<rbd::Pool>& pool, const wire::DesiredVolume& volume);
  Result<void> open_image(const std::shared_ptr<rbd::Pool>& pool,
                          const wire::DesiredVolume& volume);
  void closed();
  bool is_closed_locked() const;
  void image_lost(bool blocklisted);
  // Runs `write` on a worker after earlier writes. False: too many writes are queued.
  bool post_write(std::function<void(RecordObject&)> write);
  void write_next();

  const std::shared_ptr<PoolClient> pool_client_;
  const std::shared_ptr<OpenImages> images_;
  const std::string volume_;
  const std::string location_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  Nanos waits_since_ = 0;  // since when it waits for a recorded client
  bool closing_ = false;
  bool opening_ = false;
  std::optional<Opening> opened_;             // until open() returns it
  std::shared_ptr<rbd::ServedImage> image_;   // until it is closed
  std::shared_ptr<rbd::RadosClient> client_;  // with which the image is open
  std::shared_ptr<RecordObject> object_;
  std::optional<Record> record_;
  std::string lost_;
  std::optional<Record> claiming_;
  std::optional<Result<void>> claimed_;  // result of claiming_
  bool growing_ = false;
  std::optional<Result<void>> grown_;  // result of the last growth, until grow() returns it
  std::deque<std::function<void(RecordObject&)>> writes_;
  bool writing_ = false;
};

}  // namespace sluice::control
