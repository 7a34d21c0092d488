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
#include <new>
#include <type_traits>
#include <vector>

#include "backend/backend.h"
#include "base/buffer.h"
#include "base/bytes.h"
#include "base/limits.h"
#include "scsi/command_table.h"
#include "scsi/sense.h"

namespace sluice::lun {

class Itl;
class Unit;

enum class TaskAttribute : uint8_t {  // SAM-5 §8.6; values of RFC 7143 §11.3.1
  kUntagged = 0,
  kSimple = 1,
  kOrdered = 2,
  kHeadOfQueue = 3,
  kAca = 4,
};

// A hold on a block range of one unit (DESIGN R5). Intrusive: embedded in whatever needs it.
struct RangeHold {
  uint64_t first = 0;  // block
  uint64_t last = 0;   // block, inclusive
  bool exclusive = false;
  bool granted = false;
  uint16_t slot = 0;            // range_table's
  void (*on_grant)(RangeHold&) = nullptr;
  void* context = nullptr;
  RangeHold* next = nullptr;    // range_table's waiting list
};

struct Command {
  // --- request: set by the transport before begin()
  uint64_t lun_field = 0;                 // the 8-byte LUN as on the wire, big-endian value
  std::array<uint8_t, 16> cdb{};          // first 16 bytes
  ByteView long_cdb;                      // all of it when longer than 16 (AHS), else empty
  TaskAttribute attribute = TaskAttribute::kSimple;
  uint32_t tag = 0;                       // initiator task tag, for logs
  uint32_t expected_data_in = 0;          // bytes the initiator has room for: allocation may stop there
  uint32_t expected_data_out = 0;         // bytes the initiator will send at most
  void (*complete)(Command&) = nullptr;
  void* context = nullptr;                // the transport's

  // --- data from the initiator: filled by the transport after begin() returned true
  uint32_t data_out_wanted = 0;           // bytes the CDB asks for; set by begin()
  uint32_t data_out_size = 0;             // bytes gathered, <= data_out_wanted
  std::vector<Slice> data_out;

  // --- answer: valid in complete()
  scsi::Status status = scsi::Status::kGood;
  bool aborted = false;                   // ended by abort(): nothing may be answered, unless
  bool task_aborted_status = false;       // ... this says another nexus did it (TAS=1): 40h
  std::array<uint8_t, scsi::kMaxSenseBytes> sense;
  uint8_t sense_size = 0;                 // bytes; 0: none
  uint32_t data_in_size = 0;              // bytes in data_in, already cut to the allocation length
  std::vector<Slice> data_in;

  // --- lun/'s own, between begin() and complete()
  Itl* itl = nullptr;                     // null for a LUN that doesn't exist
  const scsi::CommandInfo* info = nullptr;
  enum class Stage : uint8_t { kIdle, kAwaitingData, kBlocked, kWaitingForRange, kRunning };
  Stage stage = Stage::kIdle;
  bool data_complete = false;
  bool counted = false;                   // entered the task set
  Command* previous_active = nullptr;     // Itl's list of active commands
  Command* next_active = nullptr;
  Command* next_blocked = nullptr;        // Itl's list of commands behind an ORDERED one
  RangeHold hold;
  backend::Io io;
  std::vector<iovec> iov;                 // what io uses; capacity is kept
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
