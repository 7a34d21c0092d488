// What the checks on the way of a command decide (nexus/pipeline.h). A check looks at the command
// and its unit. It neither ends the command nor changes its stage: the caller does.
#pragma once

#include <cstdint>
#include <new>

#include "commands/command.h"
#include "scsi/sense.h"
#include "unit/role.h"

namespace sluice::lun {

enum class Verdict : uint8_t {
  kProceed,  // the next check follows
  kWait,     // the command waits; an event repeats the check
  kForward,  // Decision::owner executes the command
  kAnswer,   // the command ends as Decision says
};

// What a verdict other than kProceed and kWait needs. A constructor would cost every READ and WRITE
// 3 ns, and most proceed. So a new Decision is unset, and only the functions below set it.
class Decision {
 public:
  Decision() {}

  // The command ends with this status.
  Verdict answer(scsi::Status status) { return end(Outcome::kAnswered, status); }
  // It ends with CHECK CONDITION.
  Verdict answer(const scsi::Sense& sense) {
    ::new (&sense_) scsi::Sense(sense);
    return end(Outcome::kAnswered, scsi::Status::kCheckCondition);
  }
  // It ends without a SCSI answer.
  Verdict end(Outcome outcome) { return end(outcome, scsi::Status::kBusy); }
  // The owner that `role` names executes it.
  Verdict forward(const Role& role) {
    ::new (&owner_) Role(role);
    return Verdict::kForward;
  }

  // --- after kAnswer
  Outcome outcome() const { return outcome_; }
  scsi::Status status() const { return status_; }
  const scsi::Sense& sense() const { return sense_; }  // only with CHECK CONDITION
  // --- after kForward
  const Role& owner() const { return owner_; }

 private:
  Verdict end(Outcome outcome, scsi::Status status) {
    outcome_ = outcome;
    status_ = status;
    return Verdict::kAnswer;
  }

  Outcome outcome_;
  scsi::Status status_;
  union {
    scsi::Sense sense_;
    Role owner_;
  };
};

}  // namespace sluice::lun
