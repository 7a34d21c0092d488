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

class TaskExecution;

// One R2T in flight (RFC 7143 §11.8) and the burst that answers it.
struct Burst {
  uint32_t transfer_tag = 0;
  uint32_t offset = 0;
  uint32_t length = 0;
};

struct Task {
  enum class State : uint8_t {
    kFree,       // in its pool
    kReceived,   // its PDU was accepted; it was not passed to the nexus yet
    kExecuting,  // the nexus executes it or has ended it
    kNeedsData,  // the nexus waits for its data-out
    kFailing,    // its data was wrong and has been received; the nexus is ending it
    kAborting,   // task management has ended it: no response follows; the nexus is ending it
    kDetached,   // it is over for the initiator, and its command is detached (lun::Command)
    kAnswered,   // it ended; its response waits until the announced unsolicited data has arrived
  };
  // Whether an R2T may be sent for it (r2t_scheduler.h).
  enum class R2t : uint8_t {
    kNone,         // not admitted, or it needs no R2T
    kWaitsMemory,  // waits for memory for all of its data
    kAdmitted,     // there is memory for all of its data
    kWaitsForR2t,  // admitted, and gets another R2T when the session may send one
  };

  // The R and W bits (RFC 7143 §11.3.1).
  enum class Expects : uint8_t { kNoData, kDataIn, kDataOut, kBoth };
  // What limits the number of tasks like this one.
  enum class Slot : uint8_t {
    kWindow,     // it occupies a number of the command window
    kImmediate,  // it is immediate, or its response has freed its number
    kSetAside,   // its unit is stuck, and its number was freed (stuck_share.h)
  };
  // Whether the initiator still sends unsolicited Data-Out that it announced by F=0.
  enum class Unsolicited : uint8_t { kComplete, kAnnounced };

  lun::Command command;
  TaskExecution* execution = nullptr;
  uint32_t itt = pdu::kReservedTag;
  uint32_t cmd_sn = 0;
  uint32_t expected_length = 0;  // Expected Data Transfer Length
  Expects expects = Expects::kNoData;
  Slot slot = Slot::kWindow;
  // If fail_asc is not 0, its data was wrong, and it ends with ABORTED COMMAND and this code.
  uint8_t fail_asc = 0;
  uint8_t fail_ascq = 0;

  // --- data-out. Data arrives in order (DataPDUInOrder, DataSequenceInOrder = Yes).
  Unsolicited unsolicited_data = Unsolicited::kComplete;
  pdu::Packer packer;        // of command.data_out
  uint32_t unsolicited = 0;  // bytes of immediate and unsolicited data received
  uint32_t received = 0;     // bytes from offset 0
  uint32_t solicited = 0;    // bytes from offset 0 that arrived unsolicited or were requested
  uint32_t wanted = 0;       // min(length in the CDB, expected_length)
  uint32_t data_sn = 0;      // next in the current sequence
  uint32_t r2t_sn = 0;
  uint32_t in_burst = 0;  // bytes received of the first burst
  uint32_t charged = 0;   // bytes of the session's memory budget
  // From its begin to its completion: the LUN whose unit and session its data counts for.
  lun::CommandContext* payer = nullptr;
  uint32_t held = 0;      // bytes that count for the unit (write_buffer_quota.h)
  uint32_t reserved = 0;  // those of them that have not arrived
  uint32_t asked = 0;     // bytes that count for the LUN: CommandContext::asked_for
  uint8_t bursts = 0;     // R2Ts in flight, oldest first
  std::array<Burst, limits::kMaxOutstandingR2t> burst;
  Nanos waits_since = 0;     // valid in R2t::kWaitsMemory
  Nanos refused_since = 0;   // the reactor had no memory for it (write_buffer_quota.h)
  uint64_t admission = 0;    // its number among the admissions of the session
  uint32_t outstanding = 0;  // bytes requested by R2Ts that have not arrived

  std::vector<uint8_t> long_cdb;  // CDBs above 16 bytes
  Task* next = nullptr;           // in TaskPool's free list or in a TaskQueue

  std::vector<uint32_t> abort_itts;  // ABORT TASKs that wait for this task to end

  // Resets every field of the transport for the command in `header`, and enters kReceived.
  void receive(const pdu::Bhs& header);

  State state() const { return state_; }
  void enter(State to) {
    assert(may_follow(to));
    state_ = to;
  }
  R2t r2t() const { return r2t_; }
  void enter(R2t to) {
    assert(may_follow(to));
    r2t_ = to;
  }

  bool expects_data_in() const { return expects == Expects::kDataIn || expects == Expects::kBoth; }
  bool expects_data_out() const {
    return expects == Expects::kDataOut || expects == Expects::kBoth;
  }
  // It was passed to the nexus.
  bool begun() const { return state_ != State::kFree && state_ != State::kReceived; }
  bool aborting() const { return state_ == State::kAborting; }
  // The nexus needs no data for it (any more): data that still arrives is discarded.
  bool ignores_data() const { return state_ == State::kExecuting || state_ == State::kAnswered; }
  bool data_failed() const { return fail_asc != 0; }
  bool announces_data() const { return unsolicited_data == Unsolicited::kAnnounced; }
  bool admitted() const { return r2t_ == R2t::kAdmitted || r2t_ == R2t::kWaitsForR2t; }

 private:
  bool may_follow(State to) const;
  bool may_follow(R2t to) const;

  State state_ = State::kFree;
  R2t r2t_ = R2t::kNone;
};

// Tasks in the order in which they were added.
class TaskQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  Task* front() const { return head_; }
  void push(Task* task);
  bool remove(Task* task);  // false: it is not in the queue

 private:
  Task* head_ = nullptr;
  Task* tail_ = nullptr;
};

// All tasks of one session. Grows in blocks up to its limit, never shrinks, never moves a task.
class TaskPool {
 public:
  explicit TaskPool(uint32_t limit) : limit_(limit) {}
  Task* take();  // in State::kFree; nullptr: limit reached
  void give_back(Task* task);
  uint32_t in_use() const { return in_use_; }
  // One more task, or one fewer, does not count for the limit.
  void exempt() { ++limit_; }
  void count_again() { --limit_; }

 private:
  static constexpr uint32_t kBlock = 8;
  uint32_t limit_;
  uint32_t in_use_ = 0;
  uint32_t made_ = 0;
  Task* free_ = nullptr;
  std::vector<std::unique_ptr<Task[]>> blocks_;
};

// Maps initiator task tags to tasks. Open addressing; the fixed capacity is at least twice the
// number of tasks.
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
