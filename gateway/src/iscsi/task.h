// An iSCSI task: a SCSI command with its state in the transport, and the tasks of a session by tag
// and in order.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "commands/command.h"
#include "pdu/bhs.h"
#include "pdu/packer.h"

namespace sluice::iscsi {

class Session;

// One R2T in flight (RFC 7143 §11.8) and the burst that answers it.
struct Burst {
  uint32_t transfer_tag = 0;
  uint32_t offset = 0;
  uint32_t length = 0;
};

struct Task {
  enum class Phase : uint8_t {
    kReceived,   // its PDU was accepted; the nexus does not know it yet
    kExecuting,  // the nexus executes it, or has ended it
    kNeedsData,  // the nexus waits for its data-out
    kFailing,    // its data was wrong and has passed; the nexus is ending it
    kAnswered,   // it ended; its response waits until the announced unsolicited data has passed
  };
  // Whether it may be sent an R2T (r2t_scheduler.h).
  enum class R2t : uint8_t {
    kNone,          // not admitted, or it needs none
    kWaitsMemory,   // it waits for memory for all of its data
    kAdmitted,      // there is memory for all of its data
    kWaitsForTurn,  // admitted, and may be sent another R2T when the session may send one
  };

  lun::Command command;
  Session* session = nullptr;
  uint32_t itt = pdu::kReservedTag;
  uint32_t cmd_sn = 0;
  uint32_t expected_length = 0;  // Expected Data Transfer Length
  Phase phase = Phase::kReceived;
  R2t r2t = R2t::kNone;
  bool read = false;
  bool write = false;
  bool in_window = false;  // occupies a number of the command window
  bool aborted = false;    // task management ended it
  // If fail_asc is not 0, its data was wrong. It ends with ABORTED COMMAND and this code.
  uint8_t fail_asc = 0;
  uint8_t fail_ascq = 0;

  // --- data-out. Data arrives in order (DataPDUInOrder, DataSequenceInOrder = Yes).
  bool unsolicited_open = false;  // more unsolicited Data-Out is announced
  pdu::Packer packer;             // of command.data_out
  uint32_t unsolicited = 0;       // bytes of immediate and unsolicited data received
  uint32_t received = 0;          // bytes from offset 0
  uint32_t solicited = 0;         // bytes from offset 0 that came unsolicited or were asked for
  uint32_t wanted = 0;            // min(length that the CDB names, expected_length)
  uint32_t data_sn = 0;           // next in the present sequence
  uint32_t r2t_sn = 0;
  uint32_t in_burst = 0;  // bytes received of the first burst
  uint32_t charged = 0;   // bytes of the session's memory budget
  // From its begin to its completion: the LUN whose unit and session pay for its data.
  lun::CommandContext* payer = nullptr;
  uint32_t held = 0;      // bytes that count for the unit (write_buffer_quota.h)
  uint32_t reserved = 0;  // those of them that have not come
  uint32_t asked = 0;     // bytes that count for the LUN: CommandContext::asked_for
  uint8_t bursts = 0;     // R2Ts in flight, oldest first
  std::array<Burst, limits::kMaxOutstandingR2t> burst;
  Nanos waits_since = 0;     // valid in R2t::kWaitsMemory
  Nanos refused_since = 0;   // the reactor had no memory for it (write_buffer_quota.h)
  uint64_t admission = 0;    // its number among the admitted tasks of the session
  uint32_t outstanding = 0;  // bytes that R2Ts asked for and that have not come

  std::vector<uint8_t> long_cdb;  // CDBs above 16 bytes
  Task* next = nullptr;           // in TaskPool's free list, or in a TaskQueue

  std::vector<uint32_t> abort_itts;  // ABORT TASKs that wait for this task to end

  // The nexus knows it, or knew it.
  bool begun() const { return phase != Phase::kReceived; }
  // The nexus takes no data for it (any more): data that still comes is discarded.
  bool ignores_data() const { return phase == Phase::kExecuting || phase == Phase::kAnswered; }
  bool admitted() const { return r2t == R2t::kAdmitted || r2t == R2t::kWaitsForTurn; }
  void enter(Phase next_phase) {
    assert(may_follow(next_phase));
    phase = next_phase;
  }

 private:
  bool may_follow(Phase to) const {
    switch (to) {
      case Phase::kReceived:
        return false;  // only a new command
      case Phase::kExecuting:
        return phase != Phase::kExecuting && phase != Phase::kAnswered;
      case Phase::kNeedsData:
        return phase == Phase::kExecuting;
      case Phase::kFailing:
        return phase == Phase::kNeedsData;
      case Phase::kAnswered:  // from kReceived: refused before the nexus knew it
        return phase != Phase::kFailing && phase != Phase::kAnswered;
    }
    return false;
  }
};

// Tasks in the order in which they were added.
class TaskQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  Task* front() const { return head_; }
  void push(Task* task);
  void pop();
  // Does nothing if the task is not in the queue.
  void remove(Task* task);

 private:
  Task* head_ = nullptr;
  Task* tail_ = nullptr;
};

// All tasks of one session. Grows in blocks up to its bound, never shrinks, never moves a task.
class TaskPool {
 public:
  explicit TaskPool(uint32_t limit) : limit_(limit) {}
  Task* take();  // nullptr at the bound
  void give_back(Task* task);
  uint32_t in_use() const { return in_use_; }

 private:
  static constexpr uint32_t kBlock = 8;
  uint32_t limit_;
  uint32_t in_use_ = 0;
  uint32_t made_ = 0;
  Task* free_ = nullptr;
  std::vector<std::unique_ptr<Task[]>> blocks_;
};

// Initiator task tag -> task. Open addressing with a fixed capacity of at least twice the tasks.
class TaskTable {
 public:
  explicit TaskTable(uint32_t max_tasks);
  Task* find(uint32_t itt) const;
  void insert(Task* task);
  void erase(const Task* task);
  template <class F>
  void for_each(F&& f) const {
    for (Task* t : slots_) {
      if (t) f(t);
    }
  }

 private:
  uint32_t home(uint32_t itt) const { return (itt * 0x9e3779b1u) >> shift_; }
  std::vector<Task*> slots_;
  uint32_t mask_;
  uint32_t shift_;
};

}  // namespace sluice::iscsi
