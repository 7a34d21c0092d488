// The orders, requests and answers that arrive for a volume between two calls of step(). It refuses
// orders that are older than what is known.
//
// Callbacks hold it by a weak pointer, because answers may arrive after the volume is destroyed.
//
// Threads: any; take() and acts_on() by step() only.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

#include "control/volume/volume_services.h"
#include "control/wire.h"

namespace sluice::control {

class VolumeInbox {
 public:
  struct Mail {
    std::optional<wire::DesiredVolume> order;
    std::function<void()> on_removed;
    std::optional<uint64_t> yield_to;
    std::optional<bool> released;  // whether it was flushed
    bool fenced = false;
    std::optional<Loaded> loaded;
    uint64_t loaded_epoch = 0;
  };

  // `wake`: requests a call of step().
  explicit VolumeInbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Error: why this order is rejected.
  Result<void> order(const wire::DesiredVolume& volume);
  void remove(std::function<void()> on_removed);
  void saw_epoch(uint64_t epoch);
  // Another gateway requests the lock, which this volume holds.
  HolderAnswer asked(uint64_t order);
  // --- answers of the unit and of the services
  void released(bool flushed);
  void fenced();
  void loaded(uint64_t epoch, Loaded loaded);
  // Nothing arrived, but a step() may be possible.
  void wake() { wake_(); }

  // What arrived since the last call.
  Mail take();
  // The order that step() acts on; asked() refuses older ones.
  void acts_on(uint64_t order);
  uint64_t newest_epoch() const;

 private:
  template <class Change>
  void post(Change change);

  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  Mail mail_;
  uint64_t newest_order_ = 0;
  uint64_t newest_epoch_ = 0;
  uint64_t acting_on_ = 0;
};

}  // namespace sluice::control
