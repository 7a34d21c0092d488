// The steps from the lock to serving: reservations, the record, then the unit.
#include "base/limits.h"
#include "base/log.h"
#include "base/safety_mutation.h"
#include "control/volume/volume.h"

namespace sluice::control {

Nanos Volume::serve_with(Loaded loaded) {
  if (loaded.what == Loaded::What::kFenced) {
    fail("the control plane has moved on to a newer epoch");
    return kNever;
  }
  if (loaded.what == Loaded::What::kState) {
    begin_claim(loaded.generation, std::move(loaded.state));
    return claim_and_serve();
  }
  const bool suffices = storage_->record_suffices() && record_->reservations_known;
  if (record_->epoch >= order_.epoch() && suffices) {  // static stability (R3)
    log::warning("reservations taken from beside the data",
                 {{"volume", uid_}, {"generation", record_->generation}, {"reason", loaded.why}});
    begin_claim(record_->generation, mutation_disables(Guard::kRecord) ? lun::ReservationState()
                                                                       : record_->reservations);
    return claim_and_serve();
  }
  return limits::kLoadAgain;
}

void Volume::begin_claim(uint64_t generation, lun::ReservationState state) {
  Record& record = claim_.emplace();
  record.volume = uid_;
  record.epoch = order_.epoch();
  record.order = order_.order();
  record.generation = generation;
  record.holder = storage_->self();
  record.reservations = std::move(state);
}

Nanos Volume::claim_and_serve() {
  const Result<VolumeStorage::Claim> claimed = storage_->claim(*claim_, Outlasts::kPowerCut);
  if (!claimed) {
    fail(claimed.error());
    return kNever;
  }
  if (claimed.value() == VolumeStorage::Claim::kPending) return kNever;
  lun::ReservationState state = claim_->reservations;
  services_.open_commits(std::move(*claim_), storage_);
  claim_.reset();
  phase_ = Phase::kServing;
  serving_epoch_ = order_.epoch();
  role_ = lun::Role{lun::Standing::kOwner, serving_epoch_, self_};
  unit_->serve(std::move(backend_), std::move(state), serving_epoch_);
  shape_served();
  report(wire::VOLUME_STATE_SERVING, serving_epoch_, problem());
  return kNever;
}

}  // namespace sluice::control
