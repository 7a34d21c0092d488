#include "iscsi/data_in.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "scsi/command_table.h"
#include "scsi/sense.h"
#include "unit/unit.h"

namespace sluice::iscsi {
namespace {

// The R and W bits (§11.3.1) contradict the direction of the CDB. A command with neither bit
// expects no data; its residual reports the difference.
bool reads_for_a_writer(const Task& task) {
  const lun::Command& c = task.command;
  // The owner of a forwarded write reports its overflow in data_in_size, too.
  const bool takes_data = c.info != nullptr && (c.info->flags & scsi::kDataOut) != 0;
  return c.data_in_size != 0 && !takes_data && task.expects == Task::Expects::kDataOut;
}
bool writes_for_a_reader(const Task& task) {
  const lun::Command& c = task.command;
  return c.status == scsi::Status::kGood && c.data_in_size == 0 && c.data_out_wanted != 0 &&
         task.expects == Task::Expects::kDataIn;
}

}  // namespace

// Corrects the answer of a command whose CDB moves data in a direction that its R and W bits
// exclude.
void DataInSender::check_direction(Task* task) {
  lun::Command& c = task->command;
  // A forwarder sends the bits that the data needs. It checks those of its host itself.
  if (forwarding_) return;
  if (reads_for_a_writer(*task)) [[unlikely]] {
    // The initiator has no buffer for the data, so nothing moves: all that it expected is residual.
    c.data_in.clear();
    c.data_in_size = c.data_out_wanted = 0;
  } else if (writes_for_a_reader(*task)) [[unlikely]] {
    // GOOD would acknowledge a write of which no data came: INVALID FIELD IN COMMAND INFORMATION
    // UNIT.
    const auto sense = scsi::Sense::make(scsi::SenseKey::kIllegalRequest, 0x0e, 0x03);
    c.status = scsi::Status::kCheckCondition;
    const bool descriptor = c.itl != nullptr && c.itl->unit().descriptor_sense();
    c.sense_size = static_cast<uint8_t>(scsi::encode(sense, descriptor, c.sense));
    c.data_out_wanted = 0;
  }
}

void DataInSender::send_answer(Task* task) {
  check_direction(task);
  const lun::Command& c = task->command;
  // What the CDB moves against what the initiator expected to move (§11.4.5.1).
  const uint32_t moves =
      c.data_in_size != 0 || task->expects_data_in() ? c.data_in_size : c.data_out_wanted;
  uint8_t residual_flag = 0;
  uint32_t residual = 0;
  if (moves > task->expected_length) {
    residual_flag = pdu::kFlagOverflow;
    residual = moves - task->expected_length;
  } else if (moves < task->expected_length) {
    residual_flag = pdu::kFlagUnderflow;
    residual = task->expected_length - moves;
  }
  const uint32_t send =
      task->expects_data_in() ? std::min(c.data_in_size, task->expected_length) : 0;
  const bool collapse = send != 0 && c.status == scsi::Status::kGood && c.sense_size == 0;
  uint32_t pdus = task->r2t_sn;
  if (send != 0) pdus = send_data_in(task, send, collapse ? residual_flag : uint8_t{0}, residual);
  if (!collapse) send_response(task, pdus, residual_flag, residual);
  writer_.output_ready();
}

void DataInSender::send_forwarder_answer(const Task& task, uint8_t response) {
  pdu::Bhs& h = writer_.start(pdu::Opcode::kScsiResponse);
  h.set_flags(pdu::kFlagFinal);
  h.put8(2, response);
  h.set_itt(task.itt);
  writer_.stamp_status(h);
  writer_.finish();
  writer_.output_ready();
}

// Returns the number of PDUs.
uint32_t DataInSender::send_data_in(Task* task, uint32_t bytes, uint8_t residual_flag,
                                    uint32_t residual) {
  lun::Command& c = task->command;
  const bool collapse = c.status == scsi::Status::kGood && c.sense_size == 0;
  const uint32_t segment = parameters_.max_send_data_segment_length;
  bytes_ += bytes;
  counters_.data_in_bytes.add(bytes);
  size_t slice = 0;
  uint32_t offset = 0;    // bytes sent of the whole transfer
  uint32_t in_slice = 0;  // bytes sent of the present slice
  uint32_t in_burst = 0;  // bytes sent of the present sequence (MaxBurstLength)
  uint32_t data_sn = 0;
  for (; offset < bytes; ++data_sn) {
    const uint32_t n = std::min({bytes - offset, segment, parameters_.max_burst_length - in_burst});
    const bool last = offset + n == bytes;
    in_burst += n;
    const bool sequence_ends = last || in_burst == parameters_.max_burst_length;
    if (sequence_ends) in_burst = 0;

    pdu::Bhs& h = writer_.start(pdu::Opcode::kDataIn);
    uint8_t flags = sequence_ends ? pdu::kFlagFinal : uint8_t{0};
    if (last && collapse) {
      flags |= pdu::kFlagStatus | residual_flag;
      h.put8(3, static_cast<uint8_t>(c.status));
      h.put32(44, residual_flag ? residual : 0);
      writer_.stamp_status(h);
    } else {
      writer_.stamp(h);
      h.set_stat_sn(0);  // reserved unless S=1
    }
    h.set_flags(flags);
    h.set_itt(task->itt);
    h.set_target_transfer_tag(pdu::kReservedTag);
    h.put32(36, data_sn);
    h.put32(40, offset);
    for (uint32_t left = n; left != 0;) {
      Slice& from = c.data_in[slice];
      const uint32_t take = std::min(left, from.size - in_slice);
      const bool used_up = in_slice + take == from.size;
      writer_.data({used_up ? std::move(from.owner) : from.owner, from.data + in_slice, take});
      in_slice = used_up ? 0 : in_slice + take;
      slice += used_up;
      left -= take;
    }
    writer_.finish();
    offset += n;
  }
  return data_sn;
}

void DataInSender::send_response(Task* task, uint32_t pdus, uint8_t residual_flag,
                                 uint32_t residual) {
  const lun::Command& c = task->command;
  pdu::Bhs& h = writer_.start(pdu::Opcode::kScsiResponse);
  h.set_flags(pdu::kFlagFinal | residual_flag);
  h.put8(2, 0x00);  // command completed at target
  h.put8(3, static_cast<uint8_t>(c.status));
  h.set_itt(task->itt);
  writer_.stamp_status(h);
  h.put32(36, pdus);  // ExpDataSN: R2Ts or Data-Ins sent for it (§11.4.8)
  h.put32(44, residual);
  if (c.sense_size != 0) {
    std::array<uint8_t, scsi::kMaxSenseBytes + 2> segment;
    store_be16(segment.data(), c.sense_size);
    std::memcpy(segment.data() + 2, c.sense.data(), c.sense_size);
    writer_.copy({segment.data(), size_t{c.sense_size} + 2});
  }
  writer_.finish();
}

}  // namespace sluice::iscsi
