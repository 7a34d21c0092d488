// How a command ends.
#include "commands/handler.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "commands/active_commands.h"
#include "commands/medium_log.h"
#include "unit/latency_log.h"
#include "unit/ranges/range_table.h"
#include "unit/statistics.h"

namespace sluice::lun {
namespace {

using scsi::Sense;
using scsi::SenseKey;
using scsi::Status;

void drop_data_in(Command& command) {
  command.data_in.clear();
  command.data_in_size = 0;
}

void count(Unit& unit, Command& command) {
  const ReactorContext& context = command.nexus->reactor_context();
  UnitStatistics::Shard& counters = unit.statistics().shard(context.reactor);
  const Activity activity = command.info ? activity_of(command.info->operation) : Activity::kOther;
  context.latencies->add(command.itl->loan(), counters.complete(activity), command.arrived,
                         *context.now);
  if (command.status == Status::kGood && !command.aborted()) {
    if (activity == Activity::kRead) counters.read_bytes.add(command.data_in_size);
    if (activity == Activity::kWrite) counters.written_bytes.add(command.data_out_size);
  }
}

void end_as_aborted(Unit& unit, Command& command) {
  drop_data_in(command);
  command.sense_size = 0;
  command.status = command.abort == Abort::kWithStatus ? Status::kTaskAborted : Status::kGood;
  unit.statistics().shard(command.nexus->reactor_context().reactor).fail(Failure::kAborted);
}

// The end of every command. What complete() frees is not touched after it.
void end(Command& command) {
  CommandContext* itl = command.itl;
  if (!itl) {
    command.enter(Stage::kDone);
    return command.complete(command);
  }
  Unit& unit = itl->unit();
  const ReactorContext& context = command.nexus->reactor_context();
  if (command.progress.step) std::exchange(command.progress.step, nullptr)->ended = true;
  if (command.cleanup) std::exchange(command.cleanup, nullptr)(unit, command);
  if (command.aborted()) [[unlikely]]
    end_as_aborted(unit, command);
  count(unit, command);
  if (command.hold.state != RangeHold::State::kIdle) {
    unit.ranges().cancel(context.reactor, command.hold, context.reactors);
  }
  if (command.stage == Stage::kHeld) [[unlikely]]
    itl->leave_held();
  if (command.link) [[unlikely]]
    command.link.reset();
  if (!command.gathered.empty()) std::vector<uint8_t>().swap(command.gathered);
  leave(*itl, command);
  command.enter(Stage::kDone);
  if (!itl->watched) [[likely]]
    return command.complete(command);
  const std::shared_ptr<AttachedNexus> alive = itl->shared_from_this();
  command.complete(command);
  itl->after_completion();
}

Failure failure_of(const Sense& sense) {
  switch (sense.key) {
    case SenseKey::kMediumError:
    case SenseKey::kHardwareError:
      return Failure::kMedium;
    case SenseKey::kNotReady:
      return Failure::kNotReady;
    case SenseKey::kIllegalRequest:
      return Failure::kIllegal;
    case SenseKey::kUnitAttention:
      return Failure::kAttention;
    case SenseKey::kDataProtect:
      return sense.ascq == 0x07 ? Failure::kNoSpace : Failure::kProtected;
    case SenseKey::kMiscompare:
      return Failure::kMiscompare;
    default:
      return Failure::kOther;
  }
}

// Of sense data that came as bytes: fixed (70h) or descriptor (72h) format. NO SENSE if too short.
Sense sense_of(ByteView sense) {
  const bool descriptor = !sense.empty() && (sense[0] & 0x7f) >= 0x72;
  if (sense.size() < (descriptor ? 4u : 14u)) return {};
  const uint8_t key = sense[descriptor ? 1 : 2] & 0x0f;
  return Sense::make(static_cast<SenseKey>(key), sense[descriptor ? 2 : 12],
                     sense[descriptor ? 3 : 13]);
}

Failure failure_of(Status status, ByteView sense) {
  if (status == Status::kReservationConflict) return Failure::kConflict;
  if (status == Status::kBusy || status == Status::kTaskSetFull) return Failure::kBusy;
  return failure_of(sense_of(sense));
}

void count_failure(Command& command, Failure failure) {
  if (!command.itl) return;
  command.itl->unit().statistics().shard(command.nexus->reactor_context().reactor).fail(failure);
}

// Logs the answer of the medium's own device if it reports a failure of the medium.
void log_answer(const Command& command, const backend::Io::Answer& answer) {
  const ByteView bytes = ByteView(answer.sense).first(answer.sense_size);
  const Sense sense = sense_of(bytes);
  const Failure failure = failure_of(static_cast<Status>(answer.status), bytes);
  if (failure != Failure::kMedium && failure != Failure::kNoSpace &&
      failure != Failure::kProtected) {
    return;
  }
  const IoProgress& at = command.progress;
  log_medium_failure(command, command.itl->unit(),
                     {command.io.op, at.offset, at.remaining, "the device refused it",
                      static_cast<int>(sense.key) << 16 | sense.asc << 8 | sense.ascq},
                     sense);
}

}  // namespace

Sense sense_of_errno(int error, backend::Op op) {
  switch (error) {
    case EIO:  // UNRECOVERED READ ERROR, WRITE ERROR
      if (op == backend::Op::kCheckFence) break;
      return Sense::make(SenseKey::kMediumError, op == backend::Op::kRead ? 0x11 : 0x0c, 0x00);
    case ENOSPC:
    case EDQUOT:  // SPACE ALLOCATION FAILED WRITE PROTECT
      return Sense::make(SenseKey::kDataProtect, 0x27, 0x07);
    case EROFS:  // WRITE PROTECTED
      return Sense::make(SenseKey::kDataProtect, 0x27, 0x00);
    case ENODEV:
    case ENXIO:
    case ENOENT:
    case ESTALE:  // LOGICAL UNIT NOT READY, CAUSE NOT REPORTABLE
      return Sense::make(SenseKey::kNotReady, 0x04, 0x00);
    case ETIMEDOUT:  // DATA PHASE ERROR: ... TIMEOUT
      return Sense::make(SenseKey::kAbortedCommand, 0x4b, 0x06);
    case EOPNOTSUPP:
      return Sense::make(SenseKey::kIllegalRequest, 0x20, 0x00);
    default:
      break;
  }
  return Sense::make(SenseKey::kHardwareError, 0x44, 0x00);  // INTERNAL TARGET FAILURE
}

void finish_good(Command& command) {
  command.status = Status::kGood;
  end(command);
}

void finish_aborted(Command& command) { finish_good(command); }

void finish_status(Command& command, Status status) {
  command.status = status;
  if (status != Status::kGood && status != Status::kConditionMet) {
    drop_data_in(command);
    const bool conflict = status == Status::kReservationConflict;
    const bool busy = status == Status::kBusy || status == Status::kTaskSetFull;
    count_failure(command, conflict ? Failure::kConflict : busy ? Failure::kBusy : Failure::kOther);
  }
  end(command);
}

void finish_sense(Command& command, const Sense& sense) {
  command.status = Status::kCheckCondition;
  const bool descriptor = command.itl && command.itl->unit().descriptor_sense();
  command.sense_size = static_cast<uint8_t>(scsi::encode(sense, descriptor, command.sense));
  drop_data_in(command);
  count_failure(command, failure_of(sense));
  end(command);
}

void finish(Command& command, const Decision& decision) {
  if (decision.outcome() != Outcome::kAnswered) command.outcome = decision.outcome();
  if (command.outcome == Outcome::kNotOwner) command.itl->unit().tell_epoch(command.epoch);
  if (decision.status() == Status::kCheckCondition) {
    return finish_sense(command, decision.sense());
  }
  finish_status(command, decision.status());
}

void finish_forwarded(Command& command, Status status, ByteView sense, std::vector<Slice> data_in,
                      uint32_t overflow) {
  command.status = status;
  command.sense_size = static_cast<uint8_t>(std::min(sense.size(), command.sense.size()));
  std::copy_n(sense.data(), command.sense_size, command.sense.data());
  command.data_in = std::move(data_in);
  command.data_in_size = overflow;
  for (const Slice& slice : command.data_in) command.data_in_size += slice.size;
  if (status != Status::kGood && status != Status::kConditionMet) {
    count_failure(command, failure_of(status, sense));
  }
  end(command);
}

void finish_answered(Command& command, const backend::Io::Answer& answer) {
  log_answer(command, answer);
  drop_data_in(command);
  finish_forwarded(command, static_cast<Status>(answer.status),
                   ByteView(answer.sense).first(answer.sense_size), {});
}

namespace {

bool is_self_test(const Command& command) {
  return command.info && command.info->operation == scsi::Operation::kSendDiagnostic;
}

// LOGICAL UNIT FAILED SELF-TEST (SPC-5 §6.42), unless the unit is not ready at all.
Sense failed_self_test(const Sense& cause) {
  if (cause.key == SenseKey::kNotReady) return cause;
  return Sense::make(SenseKey::kHardwareError, 0x3e, 0x03);
}

}  // namespace

void finish_errno(Command& command, int negative_errno, backend::Op op) {
  const int error = -negative_errno;
  if (error == ESHUTDOWN) {  // whether it was executed is the next owner's to say (DESIGN R4)
    command.outcome = Outcome::kUnknown;
    return finish_status(command, Status::kBusy);
  }
  if (error == ENOMEM || error == EAGAIN) return finish_status(command, Status::kBusy);
  if (error == ENODEV || error == ENXIO || error == ENOENT || error == ESTALE) {
    command.itl->unit().medium_lost();
  }
  Sense sense = sense_of_errno(error, op);
  if (error == EIO && (op == backend::Op::kRead || op == backend::Op::kWrite)) {
    sense.has_information = true;  // the block it stopped at
    sense.information = command.progress.offset / command.itl->unit().block_size();
  }
  if (error != EOPNOTSUPP) {
    const IoProgress& at = command.progress;
    log_medium_failure(command, command.itl->unit(),
                       {op, at.offset, at.remaining, std::strerror(error), error}, sense);
  }
  finish_sense(command, is_self_test(command) ? failed_self_test(sense) : sense);
}

void finish_short_data(Command& command) {
  // INVALID FIELD IN COMMAND INFORMATION UNIT
  finish_sense(command, Sense::make(SenseKey::kIllegalRequest, 0x0e, 0x03));
}

bool range_fits(const Unit& unit, uint64_t lba, uint64_t blocks, Sense* sense) {
  const uint64_t capacity = unit.blocks();
  if (lba <= capacity && blocks <= capacity - lba) [[likely]]
    return true;
  *sense = Sense::lba_out_of_range(lba > capacity ? lba : capacity);
  return false;
}

}  // namespace sluice::lun
