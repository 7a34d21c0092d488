// Data from the initiator: unsolicited (RFC 7143 §11.7, within FirstBurstLength) and solicited by
// R2T (§11.8). DataPDUInOrder and DataSequenceInOrder are Yes, so every byte has one right place.
#include <algorithm>

#include "base/limits.h"
#include "iscsi/session.h"

namespace sluice::iscsi {
namespace {

// What Data-Out PDUs of failed tasks are answered with: sense of RFC 7143 §11.4.7.2 and SPC-5.
constexpr uint8_t kAscWriteError = 0x0c;
constexpr uint8_t kAscqUnexpectedUnsolicited = 0x0c;
constexpr uint8_t kAscDataPhase = 0x4b;
constexpr uint8_t kAscqInvalidTransferTag = 0x01;
constexpr uint8_t kAscqTooMuchData = 0x02;
constexpr uint8_t kAscqOffsetError = 0x05;
constexpr uint8_t kAscqSequenceError = 0x00;

constexpr unsigned kDataSn = 36;
constexpr unsigned kBufferOffset = 40;

}  // namespace

void Session::on_data_out(pdu::Pdu& pdu) {
  Task* task = table_.find(pdu.header.itt());
  // The task may have been aborted or answered while its data was on the way: not an error.
  if (!task || task->aborted) return;
  if (!task->write) return reject(pdu.header, pdu::RejectReason::kProtocolError);
  if (pdu.header.target_transfer_tag() == pdu::kReservedTag) return accept_unsolicited(pdu, task);
  accept_solicited(pdu, task);
}

void Session::accept_unsolicited(pdu::Pdu& pdu, Task* task) {
  const bool final = pdu.header.final();
  if (!task->unsolicited_open) return fail_data(task, kAscWriteError, kAscqUnexpectedUnsolicited);
  if (task->answered) {
    // Over already: its data is thrown away until the burst ends.
    task->unsolicited += pdu.data_size;
    if (!final && task->unsolicited <= parameters_.first_burst_length) return;
    task->unsolicited_open = false;
    return respond(task);
  }
  if (pdu.header.u32(kDataSn) != task->data_sn) {
    return fail_data(task, kAscDataPhase, kAscqSequenceError);
  }
  if (pdu.header.u32(kBufferOffset) != task->received) {
    return fail_data(task, kAscDataPhase, kAscqOffsetError);
  }
  const uint32_t limit = std::min(parameters_.first_burst_length, task->expected_length);
  if (uint64_t{task->unsolicited} + pdu.data_size > limit) {
    return fail_data(task, kAscDataPhase, kAscqTooMuchData);
  }
  ++task->data_sn;
  task->unsolicited += pdu.data_size;
  append_data(pdu, task);
  if (!final) return;
  task->unsolicited_open = false;
  task->solicited = task->received;
  if (task->begun) pump_data_out(task);
}

void Session::accept_solicited(pdu::Pdu& pdu, Task* task) {
  const pdu::Bhs& h = pdu.header;
  if (task->bursts == 0 || h.target_transfer_tag() != task->burst[0].transfer_tag) {
    return fail_data(task, kAscDataPhase, kAscqInvalidTransferTag);
  }
  const Burst& burst = task->burst[0];
  if (h.u32(kDataSn) != task->data_sn) return fail_data(task, kAscDataPhase, kAscqSequenceError);
  if (h.u32(kBufferOffset) != burst.offset + task->in_burst) {
    return fail_data(task, kAscDataPhase, kAscqOffsetError);
  }
  if (uint64_t{task->in_burst} + pdu.data_size > burst.length) {
    return fail_data(task, kAscDataPhase, kAscqTooMuchData);
  }
  ++task->data_sn;
  task->in_burst += pdu.data_size;
  const uint32_t charged = task->charged;
  append_data(pdu, task);
  // The R2T was charged for this data when it was sent.
  data_held_ -= task->charged - charged;
  task->charged = charged;
  const bool whole = task->in_burst == burst.length;
  if (h.final() != whole) return fail_data(task, kAscDataPhase, kAscqSequenceError);
  if (!whole) return;
  --task->bursts;
  std::move(task->burst.begin() + 1, task->burst.begin() + 1 + task->bursts, task->burst.begin());
  task->in_burst = 0;
  task->data_sn = 0;
  pump_data_out(task);
}

// Moves the data segment into the task. Bytes beyond what the CDB needs are counted, not kept.
void Session::append_data(pdu::Pdu& pdu, Task* task) {
  data_out_bytes_ += pdu.data_size;
  shard_.counters->data_out_bytes.add(pdu.data_size);
  uint32_t room = task->wanted > task->received ? task->wanted - task->received : 0;
  charge(task, std::min(room, pdu.data_size));
  task->received += pdu.data_size;
  std::vector<Slice>& out = task->command.data_out;
  for (Slice& piece : pdu.data) {
    if (room == 0) break;
    piece.size = std::min(piece.size, room);
    room -= piece.size;
    out.push_back(std::move(piece));
  }
  pdu.data.clear();
}

void Session::charge(Task* task, uint32_t bytes) {
  task->charged += bytes;
  data_held_ += bytes;
}

// Hands the data over when it is complete, else asks for more.
void Session::pump_data_out(Task* task) {
  if (task->unsolicited_open) return;
  if (task->received >= task->wanted) return hand_over_data(task);
  while (task->bursts < parameters_.max_outstanding_r2t && task->solicited < task->wanted) {
    if (!request_burst(task)) return;
  }
}

void Session::hand_over_data(Task* task) {
  lun::Command& c = task->command;
  c.data_out_size = std::min(task->received, task->wanted);
  // The CDB may want less than was sent unsolicited before it was looked at.
  uint32_t left = c.data_out_size;
  size_t keep = 0;
  for (Slice& piece : c.data_out) {
    if (left == 0) break;
    piece.size = std::min(piece.size, left);
    left -= piece.size;
    ++keep;
  }
  c.data_out.resize(keep);
  nexus_->data_ready(c);
}

bool Session::request_burst(Task* task) {
  const uint32_t length =
      std::min(parameters_.max_burst_length, task->wanted - task->solicited);
  if (data_held_ != task->charged && data_held_ + length > limits::kSessionMemory) {
    if (!task->waits_for_budget) budget_waiters_.push_back(task->itt);
    task->waits_for_budget = true;
    return false;
  }
  charge(task, length);
  if (next_transfer_tag_ == pdu::kReservedTag) next_transfer_tag_ = 1;
  const Burst burst{next_transfer_tag_++, task->solicited, length};
  if (task->bursts == 0) task->data_sn = task->in_burst = 0;
  task->burst[task->bursts++] = burst;
  task->solicited += length;

  pdu::Bhs& h = writer_.start(pdu::Opcode::kR2t);
  h.set_flags(pdu::kFlagFinal);
  h.set_lun(task->command.lun_field);
  h.set_itt(task->itt);
  h.set_target_transfer_tag(burst.transfer_tag);
  stamp(h, false);
  h.put32(36, task->r2t_sn++);
  h.put32(40, burst.offset);
  h.put32(44, burst.length);
  writer_.finish();
  host_.output_ready();
  return true;
}

void Session::resume_budget_waiters() {
  std::vector<uint32_t> waiters;
  waiters.swap(budget_waiters_);
  for (const uint32_t itt : waiters) {
    Task* task = table_.find(itt);
    if (!task || !task->waits_for_budget) continue;
    task->waits_for_budget = false;
    pump_data_out(task);
  }
}

// A sequence error at ERL 0 (RFC 7143 §7.9): the task ends with CHECK CONDITION, what still comes
// for it is thrown away.
void Session::fail_data(Task* task, uint8_t asc, uint8_t ascq) {
  if (task->answered) {
    task->unsolicited_open = false;
    return respond(task);
  }
  if (task->begun && task->received >= task->wanted && task->bursts == 0 &&
      !task->unsolicited_open) {
    return;  // it runs already; surplus data changes nothing
  }
  task->unsolicited_open = false;
  task->bursts = 0;
  if (!task->begun) {
    unhold(task);  // it was held back for memory
    return refuse(task, asc, ascq);
  }
  task->fail_asc = asc;
  task->fail_ascq = ascq;
  nexus_->abort(task->command);  // completes: it only waited for data
}

}  // namespace sluice::iscsi
