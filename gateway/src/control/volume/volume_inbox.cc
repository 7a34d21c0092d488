#include "control/volume/volume_inbox.h"

#include <algorithm>
#include <utility>

namespace sluice::control {

template <class Change>
void VolumeInbox::post(Change change) {
  {
    const std::lock_guard lock(mutex_);
    change(mail_);
  }
  wake_();
}

Result<void> VolumeInbox::order(const wire::DesiredVolume& volume) {
  {
    const std::lock_guard lock(mutex_);
    if (volume.order() < newest_order_ || volume.epoch() < newest_epoch_) {
      return Error{"order " + std::to_string(volume.order()) + " of epoch " +
                   std::to_string(volume.epoch()) + " is older than what is known here: order " +
                   std::to_string(newest_order_) + ", epoch " + std::to_string(newest_epoch_)};
    }
    newest_order_ = volume.order();
    newest_epoch_ = volume.epoch();
  }
  post([&](Mail& mail) { mail.order = volume; });
  return {};
}

void VolumeInbox::remove(std::function<void()> on_removed) {
  post([&](Mail& mail) { mail.on_removed = std::move(on_removed); });
}

void VolumeInbox::saw_epoch(uint64_t epoch) {
  post([&](Mail&) { newest_epoch_ = std::max(newest_epoch_, epoch); });
}

HolderAnswer VolumeInbox::asked(uint64_t order) {
  {
    const std::lock_guard lock(mutex_);
    if (order < acting_on_) return {Yield::kRefused, acting_on_};
  }
  post([&](Mail& mail) { mail.yield_to = std::max(mail.yield_to.value_or(0), order); });
  return {Yield::kYielding, 0};
}

void VolumeInbox::released(bool flushed) {
  post([&](Mail& mail) { mail.released = flushed; });
}

void VolumeInbox::fenced() {
  post([](Mail& mail) { mail.fenced = true; });
}

void VolumeInbox::loaded(uint64_t epoch, Loaded loaded) {
  post([&](Mail& mail) {
    mail.loaded = std::move(loaded);
    mail.loaded_epoch = epoch;
  });
}

VolumeInbox::Mail VolumeInbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(mail_, {});
}

void VolumeInbox::acts_on(uint64_t order) {
  const std::lock_guard lock(mutex_);
  acting_on_ = order;
}

uint64_t VolumeInbox::newest_epoch() const {
  const std::lock_guard lock(mutex_);
  return newest_epoch_;
}

}  // namespace sluice::control
