// One SCSI command on its way from the transport to a unit and back. The transport embeds it in its
// task, so that no memory is allocated per command in steady state.
//
// Life: the transport fills the request fields and calls Nexus::begin(). If that returns true, the
// command needs data: the transport gathers data_out and calls Nexus::data_ready(). The command
// ends with exactly one call of complete(), which may happen within begin(), data_ready() or
// abort(). After complete() the transport may reuse it.
//
// Threads: the nexus's reactor only.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "scsi/cdb.h"
#include "scsi/command_table.h"
#include "scsi/sense.h"
#include "unit/ranges/range_hold.h"

namespace sluice::lun {

class CommandContext;
class Link;
class NexusContext;
class Unit;
struct Command;

enum class TaskAttribute : uint8_t {  // SAM-5 §8.6; values of RFC 7143 §11.3.1
  kUntagged = 0,
  kSimple = 1,
  kOrdered = 2,
  kHeadOfQueue = 3,
  kAca = 4,
};

// Whether a task management function has aborted a command.
enum class Abort : uint8_t {
  kNone,
  kSilent,      // of its own nexus: the command gets no answer
  kWithStatus,  // of another nexus, with TAS=1: it ends with TASK ABORTED (SAM-5 §5.3.1)
};

// What the transport does with a command that ended and was not aborted.
enum class Outcome : uint8_t {
  kAnswered,  // it sends status, sense and data
  // Whether the command was executed is unknown, so it must not be answered: the transport ends the
  // nexus as lost (DESIGN R3).
  kUnknown,
  // The command was not executed, and an initiator must not get an answer:
  kStale,     // it would have been submitted after fresh_until: dropped together with its nexus
  kNotOwner,  // this gateway is not the owner of `epoch`: the forwarder is notified
};

// Where a command is on its way (nexus/pipeline.h). The stages that wait name what they wait for.
enum class Stage : uint8_t {
  kDone,              // not begun, or ended
  kEntered,           // it entered its task set; nothing was checked
  kAwaitingData,      // waits for its data-out
  kHeld,              // waits for an owner of its unit, or for bandwidth
  kBlocked,           // waits for other commands of its task set
  kWaitingForRange,   // waits for its blocks
  kWaitingForChange,  // waits to change reservations (commands/reservations/reservation_queue.h)
  kForwarded,         // Command::link has it
  kForwardedAborted,  // ... and was notified of its abort
  kRunning,           // it is being checked, or a handler has it
};

// Whether a command in stage `from` may go to `to`. A command ends from every stage.
constexpr bool may_follow(Stage from, Stage to) {
  switch (to) {
    case Stage::kDone:
      return true;
    case Stage::kEntered:
      return from == Stage::kDone;
    case Stage::kForwardedAborted:
      return from == Stage::kForwarded;
    case Stage::kRunning:
      return from != Stage::kDone;
    default:
      return from == Stage::kRunning;
  }
}

// The progress of run_io() in a request that needs several steps.
struct IoProgress {
  // On the stack of the caller of `next`. A handler that starts its next request within `next`,
  // with a backend that completes immediately, then makes a loop instead of a growing stack.
  struct Step {
    bool restarted = false;
    bool ended = false;
  };
  Step* step = nullptr;
  void (*next)(Unit& unit, Command& command) = nullptr;
  backend::Op op = backend::Op::kRead;
  uint8_t flags = 0;
  uint8_t period = 0;      // of the request in progress (unit/request_ages.h)
  uint32_t vector = 0;     // first iovec that is not finished
  uint64_t offset = 0;     // bytes
  uint64_t remaining = 0;  // bytes
};

struct Command {
  // --- request: set by the transport before begin()
  uint64_t lun_field = 0;         // the 8-byte LUN field of the PDU as a big-endian value
  std::array<uint8_t, 16> cdb{};  // first 16 bytes
  ByteView long_cdb;              // the whole CDB if it is longer than 16 bytes (AHS), else empty
  TaskAttribute attribute = TaskAttribute::kSimple;
  uint32_t tag = 0;  // initiator task tag, for logs
  // bytes that the initiator can receive: allocation may stop there
  uint32_t expected_data_in = 0;
  uint32_t expected_data_out = 0;  // maximum number of bytes that the initiator will send
  bool needs_stable_data = false;  // data_in must not change during a concurrent write (digests)
  Nanos arrived = 0;               // time of arrival, for its latency
  // DESIGN R6: time on ReactorContext::clock after which no part of the command may be submitted
  // any more. Checked when its blocks are held, just before the first request to the backend. 0: no
  // limit.
  Nanos fresh_until = 0;
  // For a command that another gateway forwarded: the epoch in which that gateway considers this
  // one the owner (DESIGN R1). It is never forwarded again. 0: it came from its initiator.
  uint64_t epoch = 0;
  void (*complete)(Command&) = nullptr;
  // May be null. The command was detached; complete() follows when the backend has released it.
  void (*on_detached)(Command&) = nullptr;
  void* context = nullptr;  // used by the transport

  // --- data from the initiator: filled by the transport after begin() returned true
  uint32_t data_out_wanted = 0;  // bytes that the CDB requires; set by begin()
  uint32_t data_out_size = 0;    // bytes received, <= data_out_wanted
  std::vector<Slice> data_out;   // the transport clears it when the command is complete

  // --- answer: valid in complete()
  scsi::Status status = scsi::Status::kGood;
  Abort abort = Abort::kNone;
  bool aborted() const { return abort != Abort::kNone; }
  Nanos aborted_at = 0;  // valid if aborted()
  // It was aborted limits::kAbortBound ago, and the backend has not completed it. It holds its
  // blocks, and nothing else waits for it but the end of its nexus's objects and of the backend.
  bool detached = false;
  Outcome outcome = Outcome::kAnswered;
  std::array<uint8_t, scsi::kMaxSenseBytes> sense;
  uint8_t sense_size = 0;  // bytes; 0: none
  // Bytes of the answer, limited to the allocation length. If it exceeds expected_data_in (an
  // overflow), data_in contains only expected_data_in bytes, else exactly this many.
  uint32_t data_in_size = 0;
  std::vector<Slice> data_in;  // cleared by begin(), and by the transport when sent

  // --- used by the SCSI rooms between begin() and complete()
  NexusContext* nexus = nullptr;
  CommandContext* itl = nullptr;  // null for a LUN that does not exist
  const scsi::CommandInfo* info = nullptr;
  scsi::BlockRange range;  // from the CDB of commands on logical blocks
  Stage stage = Stage::kDone;
  // The only way to change the stage.
  void enter(Stage next) {
    assert(may_follow(stage, next));
    stage = next;
  }
  // this gateway checked its CDB for the present state of the unit
  bool prepared = false;
  bool charged = false;                // its bandwidth was taken
  bool submitted = false;              // it may have reached the backend
  Nanos held_since = -1;               // when it was held first; -1: never
  std::shared_ptr<Link> link;          // while kForwarded
  uint64_t sequence = 0;               // order of arrival within the I_T_L nexus
  Command* previous_active = nullptr;  // the list of active commands, in order of arrival
  Command* next_active = nullptr;
  bool wants_hold = false;  // run() acquires `hold` before it calls the handler
  RangeHold hold;
  void (*after_hold)(Unit& unit, Command& command) = nullptr;
  backend::Io io;
  IoProgress progress;
  std::vector<iovec> iov;         // for io; its capacity is kept
  std::vector<uint8_t> gathered;  // copy made by gather_data_out(), if necessary
  // Called once when the command ends for any reason, before anything is released. For handlers
  // with resources of their own.
  void (*cleanup)(Unit& unit, Command& command) = nullptr;
  // State of a handler that works in several steps.
  alignas(std::max_align_t) std::array<std::byte, 256> scratch;
  template <class T>
  T& scratch_as() {
    static_assert(sizeof(T) <= 256 && std::is_trivially_destructible_v<T>);
    return *std::launder(reinterpret_cast<T*>(scratch.data()));
  }
  template <class T>
  T& start_scratch() {
    static_assert(sizeof(T) <= 256 && std::is_trivially_destructible_v<T>);
    return *new (scratch.data()) T{};
  }

  ByteView full_cdb() const { return long_cdb.empty() ? ByteView(cdb) : long_cdb; }
};

}  // namespace sluice::lun
