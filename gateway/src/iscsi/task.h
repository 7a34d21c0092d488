// An iSCSI task: a SCSI command with what the transport must remember of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "lun/command.h"
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
  lun::Command command;
  Session* session = nullptr;
  uint32_t itt = pdu::kReservedTag;
  uint32_t cmd_sn = 0;
  uint32_t expected_length = 0;  // Expected Data Transfer Length
  bool read = false;
  bool write = false;
  bool in_window = false;  // holds a place in the command window
  bool begun = false;      // handed to the nexus
  bool gathering = false;  // the nexus waits for its data
  bool aborted = false;    // task management ended it
  bool answered = false;   // complete() ran; waits for unsolicited data to end
  uint8_t fail_asc = 0;    // not 0: its data was wrong, it ends with 0B/asc/ascq ...
  uint8_t fail_ascq = 0;
  bool failing = false;  // ... now, all announced data having gone by

  // --- data-out. Data arrives in order (DataPDUInOrder, DataSequenceInOrder = Yes).
  bool unsolicited_open = false;  // more unsolicited Data-Out is announced
  pdu::Packer packer;             // of command.data_out
  uint32_t unsolicited = 0;       // bytes of immediate and unsolicited data received
  uint32_t received = 0;          // bytes from offset 0
  uint32_t solicited = 0;         // bytes asked for by R2Ts, or taken unsolicited, from offset 0
  uint32_t wanted = 0;            // min(what the CDB needs, expected_length)
  uint32_t data_sn = 0;           // next in the present sequence
  uint32_t r2t_sn = 0;
  uint32_t in_burst = 0;  // bytes received of the first burst
  uint32_t charged = 0;   // bytes of the session's memory budget
  // From its begin to its completion: the LUN whose unit and session pay for its data.
  lun::Itl* payer = nullptr;
  uint32_t held = 0;      // bytes that count for the unit (write_memory.h)
  uint32_t promised = 0;  // those of them that have not come
  uint32_t asked = 0;     // bytes that count for the LUN: Itl::asked_for
  bool admitted = false;  // the budget covers all it still needs
  uint8_t bursts = 0;     // R2Ts in flight, oldest first
  std::array<Burst, limits::kMaxOutstandingR2t> burst;
  bool waits_for_budget = false;
  Nanos waits_since = 0;         // ... since then
  Nanos refused_since = 0;       // the reactor had no memory for it (write_memory.h)
  uint64_t admission = 0;        // when the budget let it in: counts up
  uint32_t outstanding = 0;      // bytes asked for by R2Ts that have not come
  bool waits_for_burst = false;  // it may have another R2T, the session may not

  std::vector<uint8_t> long_cdb;  // CDBs above 16 bytes
  Task* next = nullptr;           // free list, held list

  std::vector<uint32_t> abort_itts;  // ABORT TASKs that wait for this task to end
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
