// The PDUs of a session beside SCSI: NOP (RFC 7143 §11.18, §11.19), Text (§11.10),
// Logout (§11.14), Async Message (§11.9), Reject (§11.17).
#include <algorithm>

#include "base/limits.h"
#include "iscsi/session.h"

namespace sluice::iscsi {

using pdu::Opcode;
using pdu::RejectReason;

void Session::on_nop_out(pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (h.itt() == pdu::kReservedTag) {
    // §11.18: it has no CmdSN of its own, so it must be immediate.
    if (!h.immediate()) return reject(h, RejectReason::kProtocolError);
    // The answer to our ping, or, with the reserved tag, a sign of life. Neither gets an answer.
    if (h.target_transfer_tag() == pdu::kReservedTag) return;
    return liveness_.record_pong(h.target_transfer_tag());
  }
  if (parameters_.discovery) return reject(h, RejectReason::kProtocolError);
  pdu::Bhs& answer = writer_.start(Opcode::kNopIn);
  answer.set_flags(pdu::kFlagFinal);
  answer.set_lun(h.lun());
  answer.set_itt(h.itt());
  answer.set_target_transfer_tag(pdu::kReservedTag);
  stamp(answer, true);
  uint32_t left = std::min(pdu.data_size, parameters_.max_send_data_segment_length);
  for (Slice& piece : pdu.data) {
    piece.size = std::min(piece.size, left);
    left -= piece.size;
    // A peer that reads slowly must not keep a receive buffer for a few bytes (pdu/packer.h).
    if (piece.size < limits::kPackedPiece) {
      writer_.copy({piece.data, piece.size});
    } else {
      writer_.data(std::move(piece));
    }
  }
  pdu.data.clear();
  writer_.finish();
  host_.output_ready();
}

void Session::send_ping() {
  const uint32_t transfer_tag = new_transfer_tag();
  liveness_.record_ping(transfer_tag, shard_.now);
  send_nop_in(transfer_tag, {});
}

uint32_t Session::new_transfer_tag() {
  if (next_transfer_tag_ == pdu::kReservedTag) next_transfer_tag_ = 1;
  return next_transfer_tag_++;
}

// A NOP-In that the host did not ask for. It overtakes all output but the send in flight, because
// its purpose depends on when it arrives: on a slow line, a host with megabytes of data before the
// ping would seem to be gone.
void Session::send_nop_in(uint32_t transfer_tag, ByteView data) {
  const uint32_t overtaken = out_.overtaken();
  const auto write = [&](uint32_t stat_sn) {
    pdu::Bhs& h = writer_.start(Opcode::kNopIn);
    h.set_flags(pdu::kFlagFinal);
    h.set_itt(pdu::kReservedTag);
    h.set_target_transfer_tag(transfer_tag);
    stamp(h, false);
    h.set_stat_sn(stat_sn);  // the next one, which it does not take (RFC 7143 §11.19.1)
    writer_.copy(data);
    writer_.finish();
  };
  // It must not overtake the Login Response. The host has that if it has confirmed anything.
  if (liveness_.confirmed_until() > started_) {
    out_.ahead([&] { write(stat_sn_ - overtaken); });
  } else {
    write(stat_sn_);
  }
  host_.output_ready();
}

void Session::greet() {
  if (forwarding()) send_token();
}

// See forwarding_wire.h. The forwarder does not answer it; pings show whether it is there.
void Session::send_token() {
  std::array<uint8_t, kTokenSize> bytes;
  shard_.gateway->random(bytes.data(), bytes.size());
  tokens_.issue(load_be64(bytes.data()), shard_.now);
  token_sent_ = shard_.now;
  send_nop_in(pdu::kReservedTag, bytes);
}

void Session::on_text(const pdu::Pdu& pdu) {
  std::string text;
  text.reserve(pdu.data_size);
  for (const Slice& piece : pdu.data) text.append(as_text({piece.data, piece.size}));
  const TextExchange::Answer answer = text_.on_request(pdu.header, as_bytes(text));
  if (answer.kind == TextExchange::Answer::Kind::kReject) return reject(pdu.header, answer.reason);
  pdu::Bhs& h = writer_.start(Opcode::kTextResponse);
  h = answer.header;
  h.set_opcode(Opcode::kTextResponse);
  stamp(h, true);
  writer_.copy(as_bytes(answer.text));
  writer_.finish();
  host_.output_ready();
}

void Session::on_logout(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  const uint8_t reason = h.flags() & 0x7f;
  const uint16_t cid = h.u16(20);
  const uint32_t itt = h.itt();
  // RFC 7143 §11.15.1: 1 = CID not found, 2 = connection recovery not supported.
  if (reason > 2) return reject(h, RejectReason::kInvalidPduField);
  if (reason != 0 && cid != cid_) return send_logout_response(itt, 1);
  if (reason == 2) return send_logout_response(itt, 2);
  close(false, [this, itt] {
    send_logout_response(itt, 0);
    host_.finish();
  });
}

void Session::send_logout_response(uint32_t itt, uint8_t response) {
  pdu::Bhs& h = writer_.start(Opcode::kLogoutResponse);
  h.set_flags(pdu::kFlagFinal);
  h.put8(2, response);
  h.set_itt(itt);
  stamp(h, true);
  h.put16(40, static_cast<uint16_t>(parameters_.default_time2wait));
  h.put16(42, static_cast<uint16_t>(parameters_.default_time2retain));
  writer_.finish();
  host_.output_ready();
}

void Session::ask_logout(uint16_t seconds) {
  if (closing_ || logout_asked_) return;
  logout_asked_ = true;
  pdu::Bhs& h = writer_.start(Opcode::kAsyncMessage);
  h.set_flags(pdu::kFlagFinal);
  h.put32(16, pdu::kReservedTag);
  stamp(h, true);
  h.put8(36, static_cast<uint8_t>(pdu::AsyncEvent::kLogoutRequest));
  h.put16(42, seconds);  // Parameter3: Time2Wait for the logout
  writer_.finish();
  host_.output_ready();
}

void Session::reject(const pdu::Bhs& header, RejectReason reason) {
  ++rejects_;
  shard_.counters->rejects[static_cast<size_t>(reason) % kRejectSlots].add();
  pdu::Bhs& h = writer_.start(Opcode::kReject);
  h.set_flags(pdu::kFlagFinal);
  h.put8(2, static_cast<uint8_t>(reason));
  h.put32(16, pdu::kReservedTag);
  stamp(h, true);
  writer_.copy({header.data(), pdu::kBhsSize});
  writer_.finish();
  host_.output_ready();
}

}  // namespace sluice::iscsi
