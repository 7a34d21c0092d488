// Writes the PDUs of a session in the full feature phase: StatSN, ExpCmdSN and MaxCmdSN
// (RFC 7143 §4.2.2), and the PDUs that several objects of the session send: Reject and NOP-In.
//
// A PDU: start(), the fields of its header, stamp() or stamp_status(), copy() or data(), then
// finish(). After the last PDU of an answer: output_ready().
//
// Threads: one reactor.
#pragma once

#include <cstdint>
#include <utility>

#include "iscsi/command_window.h"
#include "iscsi/outbox.h"
#include "iscsi/pdu_writer.h"
#include "iscsi/peer_liveness.h"
#include "iscsi/session_context.h"

namespace sluice::iscsi {

class SessionWriter {
 public:
  // `stat_sn`: the next to send.
  SessionWriter(const SessionContext& session, Outbox& out, const CommandWindow& window,
                PeerLiveness& liveness, uint32_t stat_sn);

  pdu::Bhs& start(pdu::Opcode opcode) { return writer_.start(opcode); }
  // The PDU has no StatSN of its own: it shows the next one.
  void stamp(pdu::Bhs& header) {
    header.set_stat_sn(stat_sn_);
    stamp_window(header);
  }
  // The PDU takes the next StatSN.
  void stamp_status(pdu::Bhs& header) {
    liveness_.record_sent(stat_sn_, shard_.now);
    out_.numbered();
    header.set_stat_sn(stat_sn_++);
    stamp_window(header);
  }
  void copy(ByteView bytes) { writer_.copy(bytes); }
  void data(Slice&& slice) { writer_.data(std::move(slice)); }
  void finish() { writer_.finish(); }
  void output_ready() { session_.host.output_ready(); }

  // An initiator whose window is closed waits for a PDU that opens it. If a number became free
  // without a response, a NOP-In announces that (RFC 7143 §11.19).
  void announce_window() {
    const bool announced_closed = serial_less(announced_max_, window_.expected());
    if (!announced_closed || window_.max() == announced_max_ || session_.closing()) [[likely]]
      return;
    send_nop_in(pdu::kReservedTag, {});
  }
  // A NOP-In that the initiator did not request.
  void send_nop_in(uint32_t transfer_tag, ByteView data);
  // The same, but it overtakes all output except the send in flight.
  void send_nop_in_ahead(uint32_t transfer_tag, ByteView data);
  // RFC 7143 §11.17. `header`: of the rejected PDU.
  void reject(const pdu::Bhs& header, pdu::RejectReason reason);

  uint32_t stat_sn() const { return stat_sn_; }
  uint64_t rejects() const { return rejects_; }
  // Bytes that the transport has not sent.
  size_t queued_bytes() const { return out_.bytes(); }

 private:
  void stamp_window(pdu::Bhs& header) {
    announced_max_ = window_.max();
    header.set_window(window_.expected(), announced_max_);
  }
  void write_nop_in(uint32_t transfer_tag, ByteView data, uint32_t stat_sn);

  const SessionContext& session_;
  Shard& shard_;
  Outbox& out_;
  const CommandWindow& window_;
  PeerLiveness& liveness_;
  PduWriter writer_;
  uint32_t stat_sn_;
  uint32_t announced_max_;  // the last MaxCmdSN that was sent
  uint64_t rejects_ = 0;
};

}  // namespace sluice::iscsi
