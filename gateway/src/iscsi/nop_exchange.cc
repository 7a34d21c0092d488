#include "iscsi/nop_exchange.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "base/safety_mutation.h"
#include "iscsi/forwarding_wire.h"

namespace sluice::iscsi {

using pdu::RejectReason;

void NopExchange::on_nop_out(pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (h.itt() == pdu::kReservedTag) {
    // §11.18: it has no CmdSN of its own, so it must be immediate.
    if (!h.immediate()) return writer_.reject(h, RejectReason::kProtocolError);
    // The answer to our ping, or, with the reserved tag, a sign of life. Neither gets an answer.
    if (h.target_transfer_tag() == pdu::kReservedTag) return;
    return liveness_.record_pong(h.target_transfer_tag());
  }
  if (session_.parameters.discovery) return writer_.reject(h, RejectReason::kProtocolError);
  pdu::Bhs& answer = writer_.start(pdu::Opcode::kNopIn);
  answer.set_flags(pdu::kFlagFinal);
  answer.set_lun(h.lun());
  answer.set_itt(h.itt());
  answer.set_target_transfer_tag(pdu::kReservedTag);
  writer_.stamp_status(answer);
  uint32_t left = std::min(pdu.data_size, session_.parameters.max_send_data_segment_length);
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
  writer_.output_ready();
}

// A NOP-In that the host did not ask for. It overtakes all output but the send in flight, because
// its purpose depends on when it arrives: on a slow line, a host with megabytes of data before the
// ping would seem to be gone.
void NopExchange::send_ahead(uint32_t transfer_tag, ByteView data) {
  // It must not overtake the Login Response. The host has that if it has confirmed anything.
  if (liveness_.confirmed_until() > session_.started) {
    writer_.send_nop_in_ahead(transfer_tag, data);
  } else {
    writer_.send_nop_in(transfer_tag, data);
  }
}

void NopExchange::send_ping() {
  const uint32_t transfer_tag = transfer_tags_.next();
  liveness_.record_ping(transfer_tag, session_.shard.now);
  send_ahead(transfer_tag, {});
}

// The forwarder does not answer a token; pings show whether it is there.
void NopExchange::renew_token() {
  const Nanos now = session_.shard.now;
  if (!session_.forwarding()) return;
  if (token_sent_ != 0 && now - token_sent_ < limits::kTokenInterval) return;
  std::array<uint8_t, kTokenSize> bytes;
  session_.shard.gateway->random(bytes.data(), bytes.size());
  tokens_.issue(load_be64(bytes.data()), now);
  token_sent_ = now;
  send_ahead(pdu::kReservedTag, bytes);
}

void NopExchange::check_peer(Nanos last_received) {
  const Settings& s = session_.shard.gateway->settings;
  const Nanos now = session_.shard.now;
  if (s.nop_silence == 0 || mutation_disables(Guard::kPing)) return;
  const bool answers = liveness_.answers_pings();
  if (liveness_.ping_in_flight()) {
    const Nanos sent = liveness_.ping_sent();
    // DESIGN R6: a peer that answered pings before and does not now is gone, or receives nothing.
    if (answers) {
      if (now - sent < s.nop_timeout || liveness_.confirmed_until() >= sent) return;
      if (mutation_disables(Guard::kClose)) return;
      session_.shard.counters->nop_timeouts.add();
      session_.host.record_fault(HostFaultKind::kPingLost,
                                 "the host did not answer a NOP-In, so the connection was closed");
      return session_.host.drop("no answer to NOP-In");
    }
    if (last_received < sent) return;
    liveness_.end_ping();
  }
  // The first ping goes out at once, so that the session knows early whether the peer answers
  // pings.
  const Nanos silence = now - (answers ? liveness_.confirmed_until() : last_received);
  if (liveness_.ping_sent() == 0 || silence >= s.nop_silence) send_ping();
}

}  // namespace sluice::iscsi
