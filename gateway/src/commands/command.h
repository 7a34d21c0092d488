// One SCSI command on its way from the transport to a unit and back. The transport embeds it in
// its task, so nothing is allocated per command in steady state.
//
// Life: the transport fills the request part and calls Nexus::begin(). The command either asks for
// data (begin() returned true; the transport gathers data_out and calls Nexus::data_ready()), or it
// is running. It ends with exactly one call of complete(), which may come from inside begin(),
// data_ready() or abort(). After complete() the transport may reuse it.
// Threads: everything happens on the nexus's reactor.
#pragma once

#include <sys/uio.h>

#include <array>
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

// Where run_io() is in a request that needs several steps.
struct IoProgress {
  // Lives on the stack of whoever calls `next`: a handler that starts its next request in there,
  // and backends that complete at once, then make a loop instead of an ever deeper stack.
  struct Step {
    bool restarted = false;
    bool ended = false;
  };
  Step* step = nullptr;
  void (*next)(Unit& unit, Command& command) = nullptr;
  backend::Op op = backend::Op::kRead;
  uint8_t flags = 0;
  uint32_t vector = 0;     // first iovec not yet done
  uint64_t offset = 0;     // bytes
  uint64_t remaining = 0;  // bytes
};

struct Command {
  // --- request: set by the transport before begin()
  uint64_t lun_field = 0;         // the 8-byte LUN as on the wire, big-endian value
  std::array<uint8_t, 16> cdb{};  // first 16 bytes
  ByteView long_cdb;              // all of it when longer than 16 (AHS), else empty
  TaskAttribute attribute = TaskAttribute::kSimple;
  uint32_t tag = 0;                // initiator task tag, for logs
  uint32_t expected_data_in = 0;   // bytes the initiator has room for: allocation may stop there
  uint32_t expected_data_out = 0;  // bytes the initiator will send at most
  bool needs_stable_data = false;  // data_in may not change under a concurrent write (digests)
  Nanos arrived = 0;               // when it came in, for its latency
  // DESIGN R6: on ReactorContext::clock, after which nothing of it may be submitted any more.
  // Looked at when its blocks are held, just before the first request to the backend. 0: no bound.
  Nanos fresh_until = 0;
  // Of a command that another gateway forwarded: the epoch in which that one believes us to be the
  // owner (DESIGN R1). It is never forwarded again. 0: it came from its initiator.
  uint64_t epoch = 0;
  void (*complete)(Command&) = nullptr;
  void* context = nullptr;  // the transport's

  // --- data from the initiator: filled by the transport after begin() returned true
  uint32_t data_out_wanted = 0;  // bytes the CDB asks for; set by begin()
  uint32_t data_out_size = 0;    // bytes gathered, <= data_out_wanted
  std::vector<Slice> data_out;   // the transport empties it once the command is complete

  // --- answer: valid in complete()
  scsi::Status status = scsi::Status::kGood;
  bool aborted = false;              // ended by abort(): nothing may be answered, unless
  bool task_aborted_status = false;  // ... this says another nexus did it (TAS=1): 40h
  std::array<uint8_t, scsi::kMaxSenseBytes> sense;
  uint8_t sense_size = 0;  // bytes; 0: none
  // Nothing may be answered, because nobody knows what became of the command: the transport ends
  // the nexus instead, as lost (DESIGN R3).
  bool drops_nexus = false;
  // Nothing was done, and nothing may be answered to an initiator:
  bool stale = false;      // it was to be submitted after fresh_until: dropped, with its nexus
  bool not_owner = false;  // this gateway isn't owner of `epoch`: the forwarder is told
  // Bytes the command answers, already cut to the allocation length. More than expected_data_in is
  // an overflow: data_in then holds only what there is room for, else exactly this many bytes.
  uint32_t data_in_size = 0;
  std::vector<Slice> data_in;  // emptied by begin(), and by the transport when sent

  // --- SCSI's own, between begin() and complete()
  NexusContext* nexus = nullptr;
  CommandContext* itl = nullptr;  // null for a LUN that does not exist
  const scsi::CommandInfo* info = nullptr;
  scsi::BlockRange range;  // decoded CDB of commands on logical blocks
  enum class Stage : uint8_t {
    kIdle,
    kAwaitingData,
    kHeld,  // until its unit has an owner, or its share of the unit's bandwidth
            // (nexus/command_routing.h)
    kBlocked,
    kWaitingForRange,
    kWaitingForTurn,    // to change reservations; commands/reservations/reservation_turns.h
    kForwarded,         // handed to `link`
    kForwardedAborted,  // ... which has been told of its abort
    kRunning
  };
  Stage stage = Stage::kIdle;
  bool prepared = false;               // its CDB was looked at here, for this unit as it is
  bool submitted = false;              // it may have reached the backend
  Nanos held_since = -1;               // first held then; -1: never
  std::shared_ptr<Link> link;          // while kForwarded
  uint64_t sequence = 0;               // order of arrival within the I_T_L nexus
  Command* previous_active = nullptr;  // the list of active commands, in order of arrival
  Command* next_active = nullptr;
  bool wants_hold = false;  // run() acquires `hold` before the handler is called
  RangeHold hold;
  void (*after_hold)(Unit& unit, Command& command) = nullptr;
  backend::Io io;
  IoProgress progress;
  std::vector<iovec> iov;         // what io uses; capacity is kept
  std::vector<uint8_t> gathered;  // gather_data_out()'s copy, if one was needed
  // Called once when the command ends, whatever ends it, before anything is released. For handlers
  // that hold more than the command itself does.
  void (*cleanup)(Unit& unit, Command& command) = nullptr;
  // A handler that works in several steps keeps its state here.
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
