// NOP-Out and NOP-In of a session (RFC 7143 §11.18, §11.19): answers to the initiator's pings, the
// pings of this target, and the tokens for a forwarder (forwarding_wire.h).
//
// Threads: one reactor.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "iscsi/peer_liveness.h"
#include "iscsi/ping_tokens.h"
#include "iscsi/session_context.h"
#include "iscsi/session_writer.h"
#include "iscsi/transfer_tags.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class NopExchange {
 public:
  NopExchange(const SessionContext& session, SessionWriter& writer, TransferTags& transfer_tags,
              PeerLiveness& liveness, PingTokens& tokens)
      : session_(session),
        writer_(writer),
        transfer_tags_(transfer_tags),
        liveness_(liveness),
        tokens_(tokens) {}

  void on_nop_out(pdu::Pdu& pdu);
  // Sends a token if the session is a forwarder's and the last one is old enough.
  void renew_token();
  // Sends a ping if one is due. Drops the connection if the peer did not answer the last one in
  // time. `last_received`: the time of the last byte from the peer.
  void check_peer(Nanos last_received);

 private:
  void send_ahead(uint32_t transfer_tag, ByteView data);
  void send_ping();

  const SessionContext& session_;
  SessionWriter& writer_;
  TransferTags& transfer_tags_;
  PeerLiveness& liveness_;
  PingTokens& tokens_;
  Nanos token_sent_ = 0;  // 0: none yet
};

}  // namespace sluice::iscsi
