// The Text negotiation of the full feature phase (RFC 7143 §11.10, §11.11): SendTargets and the
// keys that may be declared again. Collects multi-PDU requests and splits long answers.
//
// Threads: one reactor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "iscsi/login/parameters.h"
#include "nexus/exports.h"
#include "pdu/bhs.h"

namespace sluice::iscsi {

class TextExchange {
 public:
  struct Context {
    const lun::Exports* exports = nullptr;
    Parameters* parameters = nullptr;  // may change: MaxRecvDataSegmentLength, InitiatorAlias
    std::string local_address;         // "ip:port" the initiator connected to
  };
  explicit TextExchange(Context context);
  ~TextExchange();

  struct Answer {
    enum class Kind : uint8_t { kRespond, kReject } kind = Kind::kRespond;
    pdu::RejectReason reason = pdu::RejectReason::kProtocolError;
    // opcode, flags, ITT, TTT, LUN and length are set; the caller sets the sequence numbers
    pdu::Bhs header;
    std::string text;
  };
  // Processes a Text Request with its complete data segment. After kReject the exchange is
  // discarded and no parameter has changed.
  Answer on_request(const pdu::Bhs& header, ByteView text);
  void reset();  // for other events that end the exchange

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::iscsi
