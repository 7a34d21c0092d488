#include "iscsi/session_writer.h"

namespace sluice::iscsi {

SessionWriter::SessionWriter(const SessionContext& session, Outbox& out,
                             const CommandWindow& window, PeerLiveness& liveness, uint32_t stat_sn)
    : session_(session),
      shard_(session.shard),
      out_(out),
      window_(window),
      liveness_(liveness),
      writer_(out),
      stat_sn_(stat_sn),
      announced_max_(window.max()) {
  writer_.set_digests(session.parameters.header_digest, session.parameters.data_digest);
}

void SessionWriter::write_nop_in(uint32_t transfer_tag, ByteView data, uint32_t stat_sn) {
  pdu::Bhs& h = start(pdu::Opcode::kNopIn);
  h.set_flags(pdu::kFlagFinal);
  h.set_itt(pdu::kReservedTag);
  h.set_target_transfer_tag(transfer_tag);
  stamp(h);
  h.set_stat_sn(stat_sn);  // the next one, which it does not take (RFC 7143 §11.19.1)
  copy(data);
  finish();
}

void SessionWriter::send_nop_in(uint32_t transfer_tag, ByteView data) {
  write_nop_in(transfer_tag, data, stat_sn_);
  output_ready();
}

void SessionWriter::send_nop_in_ahead(uint32_t transfer_tag, ByteView data) {
  const uint32_t overtaken = out_.overtaken();
  out_.ahead([&] { write_nop_in(transfer_tag, data, stat_sn_ - overtaken); });
  output_ready();
}

void SessionWriter::reject(const pdu::Bhs& header, pdu::RejectReason reason) {
  ++rejects_;
  shard_.counters->rejects[static_cast<size_t>(reason) % kRejectSlots].add();
  pdu::Bhs& h = start(pdu::Opcode::kReject);
  h.set_flags(pdu::kFlagFinal);
  h.put8(2, static_cast<uint8_t>(reason));
  h.put32(16, pdu::kReservedTag);
  stamp_status(h);
  copy({header.data(), pdu::kBhsSize});
  finish();
  output_ready();
}

}  // namespace sluice::iscsi
