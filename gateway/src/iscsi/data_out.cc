#include "iscsi/data_out.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::iscsi {
namespace {

// The sense codes of tasks whose data-out was wrong (RFC 7143 §11.4.7.2, SPC-5).
constexpr uint8_t kAscWriteError = 0x0c;
constexpr uint8_t kAscqUnexpectedUnsolicited = 0x0c;
constexpr uint8_t kAscProtocolServiceCrc = 0x47;
constexpr uint8_t kAscqProtocolServiceCrc = 0x05;
constexpr uint8_t kAscDataPhase = 0x4b;
constexpr uint8_t kAscqInvalidTransferTag = 0x01;
constexpr uint8_t kAscqTooMuchData = 0x02;
constexpr uint8_t kAscqOffsetError = 0x05;
constexpr uint8_t kAscqSequenceError = 0x00;

constexpr unsigned kDataSn = 36;
constexpr unsigned kBufferOffset = 40;

}  // namespace

// RFC 7143 §11.3.4, §13.13: immediate data counts as the start of the unsolicited data. An error
// ends the task as §11.4.7.2 says, after the announced data was discarded.
bool DataOutReceiver::accept_immediate(pdu::Pdu& pdu, Task* task) {
  const uint32_t limit = std::min(parameters_.first_burst_length, task->expected_length);
  const bool may_follow = !parameters_.initial_r2t;
  if ((pdu.data_size != 0 && !parameters_.immediate_data) || pdu.data_size > limit ||
      (task->announces_data() && !may_follow)) {
    // RFC 7143 §11.3.1: F=1 is required when nothing unsolicited may follow.
    if (!may_follow) task->unsolicited_data = Task::Unsolicited::kComplete;
    execution_.refuse(task, kAscWriteError, kAscqUnexpectedUnsolicited);
    return false;
  }
  task->unsolicited = pdu.data_size;
  append_data(pdu, task, false);
  return true;
}

void DataOutReceiver::on_data_out(pdu::Pdu& pdu) {
  Task* task = tasks_.find(pdu.header.itt());
  // The task may have been aborted, or have ended, while its data was on the way: no error.
  if (!task || task->aborting()) return;
  if (!task->expects_data_out())
    return writer_.reject(pdu.header, pdu::RejectReason::kProtocolError);
  const bool solicited = pdu.header.target_transfer_tag() != pdu::kReservedTag;
  if (solicited) r2t_.on_solicited_bytes(task, pdu.data_size);
  if (task->data_failed()) {
    discard_failed(task, pdu.header);
  } else if (solicited) {
    accept_solicited(pdu, task);
  } else {
    accept_unsolicited(pdu, task);
  }
  r2t_.request_bursts();
}

// RFC 7143 §7.8: the session has rejected the PDU.
void DataOutReceiver::on_digest_error(const pdu::Pdu& pdu) {
  Task* task = tasks_.find(pdu.header.itt());
  if (!task || task->aborting() || !task->expects_data_out()) return;
  if (pdu.header.target_transfer_tag() != pdu::kReservedTag) {
    r2t_.on_solicited_bytes(task, pdu.data_size);
  }
  if (task->data_failed()) {
    discard_failed(task, pdu.header);
  } else {
    fail_data(task, kAscProtocolServiceCrc, kAscqProtocolServiceCrc, pdu.header);
  }
  r2t_.request_bursts();
}

void DataOutReceiver::accept_unsolicited(pdu::Pdu& pdu, Task* task) {
  const bool final = pdu.header.final();
  const auto fail = [&](uint8_t asc, uint8_t ascq) { fail_data(task, asc, ascq, pdu.header); };
  if (!task->announces_data()) return fail(kAscWriteError, kAscqUnexpectedUnsolicited);
  if (task->ignores_data()) {
    // Discarded until the announced data ends.
    if (!final) return;
    return execution_.announced_data_ended(task);
  }
  if (pdu.header.u32(kDataSn) != task->data_sn) return fail(kAscDataPhase, kAscqSequenceError);
  if (pdu.header.u32(kBufferOffset) != task->received) {
    return fail(kAscDataPhase, kAscqOffsetError);
  }
  const uint32_t limit = std::min(parameters_.first_burst_length, task->expected_length);
  if (uint64_t{task->unsolicited} + pdu.data_size > limit) {
    return fail(kAscDataPhase, kAscqTooMuchData);
  }
  ++task->data_sn;
  task->unsolicited += pdu.data_size;
  append_data(pdu, task, false);
  if (!final) return;
  task->unsolicited_data = Task::Unsolicited::kComplete;
  task->solicited = task->received;
  r2t_.continue_task(task);
}

void DataOutReceiver::accept_solicited(pdu::Pdu& pdu, Task* task) {
  const pdu::Bhs& h = pdu.header;
  const auto fail = [&](uint8_t ascq) { fail_data(task, kAscDataPhase, ascq, h); };
  if (task->bursts == 0 || h.target_transfer_tag() != task->burst[0].transfer_tag) {
    return fail(kAscqInvalidTransferTag);
  }
  // §11.7.4: the LUN of a solicited Data-Out is that of its R2T.
  if (h.lun() != task->command.lun_field) return fail(kAscqInvalidTransferTag);
  const Burst& burst = task->burst[0];
  if (h.u32(kDataSn) != task->data_sn) return fail(kAscqSequenceError);
  if (h.u32(kBufferOffset) != burst.offset + task->in_burst) return fail(kAscqOffsetError);
  if (uint64_t{task->in_burst} + pdu.data_size > burst.length) return fail(kAscqTooMuchData);
  ++task->data_sn;
  task->in_burst += pdu.data_size;
  append_data(pdu, task, true);
  const bool whole = task->in_burst == burst.length;
  if (h.final() && !whole) return fail(kAscqSequenceError);
  if (whole && !h.final()) {
    // No more data can come for this R2T, so it ends here without an F bit.
    pdu.header.set_flags(h.flags() | pdu::kFlagFinal);
    return fail(kAscqSequenceError);
  }
  if (!whole) return;
  --task->bursts;
  std::move(task->burst.begin() + 1, task->burst.begin() + 1 + task->bursts, task->burst.begin());
  task->in_burst = 0;
  task->data_sn = 0;
  r2t_.continue_task(task);
}

// Moves the data segment into the task. Bytes beyond the length that the CDB names are counted, but
// not kept. Solicited bytes were charged when the task was admitted.
void DataOutReceiver::append_data(pdu::Pdu& pdu, Task* task, bool solicited) {
  bytes_ += pdu.data_size;
  counters_.data_out_bytes.add(pdu.data_size);
  uint32_t room = task->wanted > task->received ? task->wanted - task->received : 0;
  if (solicited) {
    r2t_.consume(task, pdu.data_size);
  } else {
    r2t_.charge(task, std::min(room, pdu.data_size));
  }
  task->received += pdu.data_size;
  std::vector<Slice>& out = task->command.data_out;
  for (Slice& piece : pdu.data) {
    if (room == 0) break;
    piece.size = std::min(piece.size, room);
    room -= piece.size;
    // A PDU may carry only a few bytes, so pieces of several PDUs are packed together.
    task->packer.add(out, std::move(piece));
  }
  pdu.data.clear();
}

// A sequence or digest error at ERL 0 (RFC 7143 §7.8, §7.9). The task ends with CHECK CONDITION
// when all data that was announced or asked for has passed: until then its tag is in use.
void DataOutReceiver::fail_data(Task* task, uint8_t asc, uint8_t ascq, const pdu::Bhs& header) {
  if (task->ignores_data()) {
    // Surplus data changes nothing.
    if (!header.final() || !task->announces_data()) return;
    return execution_.announced_data_ended(task);
  }
  task->fail_asc = asc;
  task->fail_ascq = ascq;
  execution_.stop_waiting(task);
  task->command.data_out.clear();
  r2t_.stop_requesting(task);
  discard_failed(task, header);
}

// Counts the data of a task whose data was wrong, and ends the task after the last of it.
void DataOutReceiver::discard_failed(Task* task, const pdu::Bhs& header) {
  if (task->state() == Task::State::kFailing) return;
  if (header.final()) {
    if (header.target_transfer_tag() == pdu::kReservedTag) {
      task->unsolicited_data = Task::Unsolicited::kComplete;
    } else if (task->bursts != 0) {
      --task->bursts;
    }
  }
  if (task->announces_data() || task->bursts != 0) return;
  execution_.end_failed(task);
}

}  // namespace sluice::iscsi
