#include "load/iscsi_dialect.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice::bench {

using pdu::Bhs;
using pdu::Opcode;

IscsiDialect::IscsiDialect(const IscsiState& state, std::unique_ptr<IscsiLink> link,
                           std::vector<uint64_t> luns, uint32_t block_size, uint32_t slots,
                           bool constant_payload)
    : link_(std::move(link)),
      parameters_(state.parameters),
      luns_(std::move(luns)),
      block_shift_(static_cast<uint32_t>(std::countr_zero(block_size))),
      constant_payload_(constant_payload),
      commands_(slots),
      cmd_sn_(state.cmd_sn),
      exp_stat_sn_(state.exp_stat_sn),
      max_cmd_sn_(state.max_cmd_sn) {}

TxQueue::Digests IscsiDialect::digests() const {
  return {.header = parameters_.header_digest,
          .data = parameters_.data_digest,
          .constant_payload = constant_payload_};
}

bool IscsiDialect::issue(const Command& command, TxQueue& tx) {
  if (static_cast<int32_t>(max_cmd_sn_ - cmd_sn_) < 0) return false;  // serial arithmetic
  commands_[command.slot] = command;
  Bhs h;
  h.set_opcode(Opcode::kScsiCommand);
  h.set_lun(lun_of(command.slot));
  h.set_itt(command.slot);
  h.put32(20, command.size);
  h.put32(24, cmd_sn_++);
  h.put32(28, exp_stat_sn_);
  h.put8(32, command.write ? 0x8a : 0x88);  // WRITE(16), READ(16)
  store_be64(h.data() + 34, command.offset >> block_shift_);
  h.put32(42, command.size >> block_shift_);
  constexpr uint8_t kSimple = 1;
  if (!command.write) {
    h.set_flags(pdu::kFlagFinal | pdu::kFlagRead | kSimple);
    tx.add(h, nullptr, 0);
    return true;
  }
  const uint32_t unasked = std::min(command.size, parameters_.first_burst);
  const uint32_t immediate =
      parameters_.immediate_data ? std::min(unasked, parameters_.target_segment) : 0;
  const uint32_t unsolicited = parameters_.initial_r2t ? 0 : unasked - immediate;
  // F says that no unsolicited Data-Out follows (RFC 7143 §11.3.1).
  const uint8_t final_flag = unsolicited == 0 ? pdu::kFlagFinal : 0;
  h.set_flags(final_flag | pdu::kFlagWrite | kSimple);
  h.set_data_length(immediate);
  tx.add(h, command.data, immediate);
  if (unsolicited > 0) {
    send_data({.slot = command.slot, .from = immediate, .size = unsolicited}, tx);
  }
  return true;
}

void IscsiDialect::send_data(const Burst& burst, TxQueue& tx) {
  const Command& command = commands_[burst.slot];
  uint32_t sent = 0;
  for (uint32_t data_sn = 0; sent < burst.size; ++data_sn) {
    const uint32_t size = std::min(burst.size - sent, parameters_.target_segment);
    Bhs h;
    h.set_opcode(Opcode::kDataOut);
    h.set_flags(sent + size == burst.size ? pdu::kFlagFinal : 0);
    h.set_data_length(size);
    h.set_lun(lun_of(burst.slot));
    h.set_itt(burst.slot);
    h.put32(20, burst.transfer_tag);
    h.put32(28, exp_stat_sn_);
    h.put32(36, data_sn);
    h.put32(40, burst.from + sent);
    tx.add(h, command.data + burst.from + sent, size);
    sent += size;
  }
}

void IscsiDialect::see_status(const Bhs& h) { exp_stat_sn_ = h.u32(24) + 1; }

const char* IscsiDialect::parse_data_in(const Bhs& h, Incoming* in) {
  in->slot = h.itt();
  in->payload = true;
  in->offset = h.u32(40);
  if (h.flags() & pdu::kFlagStatus) {
    see_status(h);
    in->done = true;
    in->status = h.u8(3);
  }
  return nullptr;
}

const char* IscsiDialect::parse_r2t(const Bhs& h, TxQueue& tx) {
  const uint32_t slot = h.itt();
  if (slot >= commands_.size() || !commands_[slot].write) return "R2T for no write";
  const uint32_t from = h.u32(40);
  const uint32_t size = h.u32(44);
  const uint32_t total = commands_[slot].size;
  if (size == 0 || from > total || size > total - from) return "R2T asks beyond the command";
  if (size > parameters_.max_burst) return "R2T asks for more than MaxBurstLength";
  send_data({.slot = slot, .transfer_tag = h.u32(20), .from = from, .size = size}, tx);
  return nullptr;
}

void IscsiDialect::answer_ping(const Bhs& h, TxQueue& tx) {
  if (h.u32(20) == pdu::kReservedTag) return;
  Bhs pong;
  pong.bytes[0] = 0x40;  // NOP-Out, immediate
  pong.set_flags(pdu::kFlagFinal);
  pong.set_lun(h.lun());
  pong.set_itt(pdu::kReservedTag);
  pong.put32(20, h.u32(20));
  pong.put32(24, cmd_sn_);
  pong.put32(28, exp_stat_sn_);
  tx.add_next(pong);  // as Linux does: data that waits for a slow line is no reason to be silent
}

const char* IscsiDialect::parse(const uint8_t* bytes, Incoming* in, TxQueue& tx) {
  Bhs h;
  std::memcpy(h.data(), bytes, pdu::kBhsSize);
  if (h.ahs_length() != 0) return "unexpected additional header segment";
  in->data = h.data_length();
  in->padding = pdu::padded(in->data) - in->data;
  in->data_digest = parameters_.data_digest && in->data > 0;
  const uint32_t max_cmd_sn = h.u32(32);
  if (static_cast<int32_t>(max_cmd_sn - max_cmd_sn_) > 0) max_cmd_sn_ = max_cmd_sn;
  switch (h.opcode()) {
    case Opcode::kDataIn:
      return parse_data_in(h, in);
    case Opcode::kScsiResponse:
      see_status(h);
      in->slot = h.itt();
      in->done = true;
      // Byte 2: anything but "completed at target" has no SCSI status (RFC 7143 §11.4.3).
      in->status = h.u8(2) == 0 ? h.u8(3) : 0xff;
      return nullptr;
    case Opcode::kR2t:
      return parse_r2t(h, tx);
    case Opcode::kNopIn:
      answer_ping(h, tx);
      return nullptr;
    case Opcode::kAsyncMessage:
      see_status(h);
      return h.u8(36) == 0 ? nullptr : "the target ends the session (Async Message)";
    case Opcode::kReject:
      return "the target sent a Reject";
    default:
      return "unexpected PDU";
  }
}

void IscsiDialect::finish(int) {
  if (link_) link_->logout(cmd_sn_, exp_stat_sn_);
}

}  // namespace sluice::bench
