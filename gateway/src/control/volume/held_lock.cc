#include "control/volume/held_lock.h"

#include <cassert>
#include <utility>

#include "base/log.h"
#include "base/safety_mutation.h"

namespace sluice::control {

using State = VolumeLifecycle::State;

HeldLock::HeldLock(Setup setup, std::unique_ptr<backend::Backend> backend, Record found)
    : setup_(std::move(setup)), backend_(std::move(backend)), found_(std::move(found)) {
  setup_.lifecycle.enter(State::kLocked);
}

HeldLock::Claimed HeldLock::claim(const wire::DesiredVolume& order, VolumeStorage& storage) {
  switch (setup_.lifecycle.state()) {
    case State::kLocked:
      request_load(order.epoch());
      return {.outcome = Outcome::kPending};
    case State::kLoading:
      if (!loaded_) return {.outcome = Outcome::kPending};
      return use(*std::exchange(loaded_, std::nullopt), order, storage);
    default:
      assert(setup_.lifecycle.state() == State::kClaiming);
      return write(storage);
  }
}

void HeldLock::loaded(Loaded loaded) {
  if (setup_.lifecycle.state() == State::kLoading && !loaded_) loaded_ = std::move(loaded);
}

void HeldLock::restart() {
  loaded_.reset();
  claim_.reset();
  setup_.lifecycle.enter(State::kLocked);
}

void HeldLock::request_load(uint64_t epoch) {
  setup_.lifecycle.enter(State::kLoading);
  // In this epoch only an earlier process of this gateway can have sent a commit.
  setup_.services.load(found_, epoch, found_.epoch >= epoch,
                       [weak = setup_.inbox, epoch](Loaded loaded) {
                         if (const auto inbox = weak.lock())
                           inbox->loaded(epoch, std::move(loaded));
                       });
}

HeldLock::Claimed HeldLock::use(const Loaded& loaded, const wire::DesiredVolume& order,
                                VolumeStorage& storage) {
  if (loaded.what == Loaded::What::kFenced) {
    return {.problem = "the control plane has moved on to a newer epoch"};
  }
  if (loaded.what == Loaded::What::kState) {
    begin_claim(order, storage.self(), loaded.generation, loaded.state);
    return write(storage);
  }
  const bool suffices = storage.record_suffices() && found_.reservations_known;
  if (found_.epoch >= order.epoch() && suffices) {  // static stability (R3)
    log::warning(
        "reservations taken from beside the data",
        {{"volume", setup_.volume}, {"generation", found_.generation}, {"reason", loaded.why}});
    begin_claim(order, storage.self(), found_.generation,
                mutation_disables(Guard::kRecord) ? lun::ReservationState() : found_.reservations);
    return write(storage);
  }
  setup_.lifecycle.enter(State::kLocked);
  return {.outcome = Outcome::kRetry};
}

void HeldLock::begin_claim(const wire::DesiredVolume& order, Holder self, uint64_t generation,
                           lun::ReservationState reservations) {
  setup_.lifecycle.enter(State::kClaiming);
  Record& record = claim_.emplace();
  record.volume = setup_.volume;
  record.epoch = order.epoch();
  record.order = order.order();
  record.generation = generation;
  record.holder = std::move(self);
  record.reservations = std::move(reservations);
}

HeldLock::Claimed HeldLock::write(VolumeStorage& storage) {
  const Result<VolumeStorage::Claim> claimed = storage.claim(*claim_, Outlasts::kPowerCut);
  if (!claimed) return {.problem = claimed.error()};
  if (claimed.value() == VolumeStorage::Claim::kPending) return {.outcome = Outcome::kPending};
  return {.outcome = Outcome::kClaimed,
          .backend = std::move(backend_),
          .record = *std::exchange(claim_, std::nullopt)};
}

}  // namespace sluice::control
