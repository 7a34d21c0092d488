// Data from the initiator (RFC 7143 §11.7): unsolicited, within FirstBurstLength, and solicited by
// R2T (r2t.cc). DataPDUInOrder and DataSequenceInOrder are Yes, so every byte has one right place.
#include <algorithm>
#include <utility>

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
  const bool solicited = pdu.header.target_transfer_tag() != pdu::kReservedTag;
  if (solicited) came(task, pdu.data_size);
  if (task->fail_asc != 0) {
    discard_failed(task, pdu.header);
  } else if (solicited) {
    accept_solicited(pdu, task);
  } else {
    accept_unsolicited(pdu, task);
  }
  request_bursts();
}

void Session::accept_unsolicited(pdu::Pdu& pdu, Task* task) {
  const bool final = pdu.header.final();
  const auto fail = [&](uint8_t asc, uint8_t ascq) { fail_data(task, asc, ascq, pdu.header); };
  if (!task->unsolicited_open) return fail(kAscWriteError, kAscqUnexpectedUnsolicited);
  if (task->answered || (task->begun && !task->gathering)) {
    // Over already, or never in want of data: it is thrown away until the burst ends.
    if (!final) return;
    task->unsolicited_open = false;
    if (task->answered) respond(task);
    return;
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
  task->unsolicited_open = false;
  task->solicited = task->received;
  pump_data_out(task);
}

void Session::accept_solicited(pdu::Pdu& pdu, Task* task) {
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
  append_data(pdu, task, true);  // charged when it was asked for
  const bool whole = task->in_burst == burst.length;
  if (h.final() && !whole) return fail(kAscqSequenceError);
  if (whole && !h.final()) {
    // Nothing more can come for this R2T, so no F bit is waited for.
    pdu.header.set_flags(h.flags() | pdu::kFlagFinal);
    return fail(kAscqSequenceError);
  }
  if (!whole) return;
  --task->bursts;
  std::move(task->burst.begin() + 1, task->burst.begin() + 1 + task->bursts, task->burst.begin());
  task->in_burst = 0;
  task->data_sn = 0;
  pump_data_out(task);
}

// Moves the data segment into the task. Bytes beyond what the CDB needs are counted, not kept.
void Session::append_data(pdu::Pdu& pdu, Task* task, bool charged) {
  data_out_bytes_ += pdu.data_size;
  shard_.counters->data_out_bytes.add(pdu.data_size);
  uint32_t room = task->wanted > task->received ? task->wanted - task->received : 0;
  if (!charged) {
    charge(task, std::min(room, pdu.data_size));
  } else {
    const uint32_t kept = std::min(task->promised, pdu.data_size);
    task->promised -= kept;
    shard_.write_memory.keep(kept);
  }
  task->received += pdu.data_size;
  std::vector<Slice>& out = task->command.data_out;
  for (Slice& piece : pdu.data) {
    if (room == 0) break;
    piece.size = std::min(piece.size, room);
    room -= piece.size;
    // Each PDU may bring but a few bytes: what was packed within one is not enough.
    task->packer.add(out, std::move(piece));
  }
  pdu.data.clear();
}

void Session::charge(Task* task, uint32_t bytes) {
  task->charged += bytes;
  data_held_ += bytes;
  if (task->begun) hold_for_unit(task, task->command.itl, bytes);
}

void Session::hold_for_unit(Task* task, lun::Itl* itl, uint32_t bytes) {
  task->payer = itl;
  task->held += bytes;
  shard_.write_memory.hold(*itl, bytes);
}

void Session::release_for_unit(Task* task) {
  if (!task->payer) return;
  lun::Itl& itl = *std::exchange(task->payer, nullptr);
  itl.asked_for -= std::exchange(task->asked, 0);
  shard_.write_memory.release(itl, std::exchange(task->held, 0), std::exchange(task->promised, 0));
}

void Session::hand_over_data(Task* task) {
  lun::Command& c = task->command;
  task->gathering = false;
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

// A sequence or digest error at ERL 0 (RFC 7143 §7.8, §7.9): the task ends with CHECK CONDITION,
// but only when all data that was announced or asked for has gone by: its tag is in use until then.
void Session::fail_data(Task* task, uint8_t asc, uint8_t ascq, const pdu::Bhs& header) {
  if (task->answered || (task->begun && !task->gathering)) {
    // It is over or runs already; surplus data changes nothing.
    if (!header.final() || !task->unsolicited_open) return;
    task->unsolicited_open = false;
    if (task->answered) respond(task);
    return;
  }
  task->fail_asc = asc;
  task->fail_ascq = ascq;
  if (!task->begun) unhold(task);  // it was held back for memory
  task->command.data_out.clear();
  stop_asking(task);
  discard_failed(task, header);
}

// Counts what comes for a task whose data went wrong, and ends it after the last.
void Session::discard_failed(Task* task, const pdu::Bhs& header) {
  if (header.final()) {
    if (header.target_transfer_tag() == pdu::kReservedTag) {
      task->unsolicited_open = false;
    } else if (task->bursts != 0) {
      --task->bursts;
    }
  }
  if (task->unsolicited_open || task->bursts != 0) return;
  if (!task->begun) return refuse(task, task->fail_asc, task->fail_ascq);
  task->failing = true;
  nexus_->abort(task->command);  // completes: it only waited for data
}

}  // namespace sluice::iscsi
