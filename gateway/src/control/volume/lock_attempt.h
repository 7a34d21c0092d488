// Takes the lock of a volume's data, from its holder if another gateway has it (DESIGN R2). It asks
// the holder to yield, and kills a process of this node that gives no answer. step() repeats the
// attempt.
//
// Threads: the volume's strand.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "control/volume/volume_storage.h"
#include "control/wire.h"

namespace sluice::control {

class LockAttempt {
 public:
  enum class Outcome : uint8_t { kLocked, kWaiting, kPending, kFailed };
  struct Tried {
    Outcome outcome = Outcome::kFailed;
    std::string problem = {};                             // unless kLocked
    std::unique_ptr<backend::Backend> backend = nullptr;  // kLocked
    Record record = {};                                   // kLocked: as found, and claimed
  };

  // `volume`: its uid.
  explicit LockAttempt(std::string volume) : volume_(std::move(volume)) {}

  // kPending: call again after the storage's `wake`. kWaiting: call again after poll().
  Tried attempt(VolumeStorage& storage, const wire::DesiredVolume& order, Nanos now);
  Nanos poll() const { return poll_; }
  // Time since the first attempt.
  Nanos waited(Nanos now) const { return now - since_; }
  // The next attempt is a first one.
  void reset() { since_ = 0; }

 private:
  Tried verify(VolumeStorage& storage, const wire::DesiredVolume& order,
               std::unique_ptr<backend::Backend> backend) const;
  // False: the order is older than the holder's.
  bool ask_holder(VolumeStorage& storage, uint64_t order, Nanos now, std::string* problem);

  const std::string volume_;
  Nanos since_ = 0;  // 0: no attempt yet
  Nanos ask_at_ = 0;
  // since when the lock's holder does not answer; 0: it answered, or was not asked
  Nanos unanswered_since_ = 0;
  Nanos poll_ = 0;
};

}  // namespace sluice::control
