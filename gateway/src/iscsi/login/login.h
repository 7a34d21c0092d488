// The login phase (RFC 7143 §6) of one connection as a state machine without I/O: requests in,
// answers out. It authenticates (CHAP), negotiates and determines the session's identity. It
// neither creates nor ends sessions: with the last answer the caller takes over, and may have to
// end an older session first (reinstatement, RFC 7143 §6.3.5).
//
// Threads: one reactor. The caller supplies the time and enforces kLoginTimeout.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "iscsi/forwarding_wire.h"
#include "iscsi/login/login_keys.h"
#include "iscsi/login/login_setup.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text.h"
#include "nexus/target.h"
#include "pdu/bhs.h"

namespace sluice::iscsi {

// One PDU to send. The header is complete except for StatSN, ExpCmdSN and MaxCmdSN, which the
// connection sets; `text` is its data segment.
struct LoginAnswer {
  pdu::Bhs header;
  std::string text;
};

class Login {
 public:
  using Setup = LoginSetup;
  explicit Login(Setup setup);

  enum class Outcome : uint8_t {
    kContinue,  // send the answer and continue
    kFailed,    // send the answer, then close
    // install the session, then send the answer (its TSIH field is 0: the caller stores the new
    // TSIH) and enter the full feature phase
    kSucceeded,
    kDrop,  // close without an answer
  };
  // Processes one Login Request PDU with its complete data segment; the caller has checked the
  // opcode.
  Outcome on_request(const pdu::Bhs& header, ByteView text, LoginAnswer* answer);

  // Valid after kSucceeded.
  const Parameters& parameters() const { return parameters_; }
  const std::shared_ptr<lun::Target>& target() const { return keys_.target(); }  // null: discovery
  const Origin& origin() const { return keys_.origin(); }  // for a forwarding port
  // Valid after the first request.
  // If not 0, the caller checks whether that session exists.
  uint16_t requested_tsih() const { return tsih_; }
  uint16_t cid() const { return cid_; }
  uint32_t first_cmd_sn() const { return first_cmd_sn_; }  // CmdSN of the login
  // Empty before the name has arrived.
  const std::string& initiator() const { return keys_.initiator(); }
  // As the initiator gave it; empty before it has arrived, and for discovery.
  const std::string& target_name() const { return keys_.target_name(); }
  // For the log and the metrics after kFailed: the status and one sentence.
  LoginStatus status() const { return refusal_.status; }
  const std::string& reason() const { return refusal_.reason; }

  // Changes a prepared answer into a failure (no resources, session limit, no such session).
  static void fail(LoginAnswer* answer, LoginStatus status);

 private:
  enum class State : uint8_t {
    kFirstRequest,   // no request has arrived
    kRequest,        // the initiator sends the next request, or the next part of one
    kSendingAnswer,  // parts of the answer are still to be sent
    kOver,           // succeeded or failed
  };

  void enter(State to);
  // Returns false.
  bool refuse(LoginStatus status, std::string_view reason);
  bool refuse(const LoginRefusal& refusal);
  // False or kFailed: after a call of refuse().
  bool check_header(const pdu::Bhs& header);
  bool check_constant_fields(const pdu::Bhs& header);
  Outcome take_request(const pdu::Bhs& header, ByteView text, LoginAnswer* answer);
  bool take_text(const pdu::Bhs& header);
  Outcome send_part(const pdu::Bhs& header, LoginAnswer* answer);
  Outcome transit(const pdu::Bhs& header, LoginAnswer* answer);

  State state_ = State::kFirstRequest;
  LoginStage stage_ = LoginStage::kSecurity;
  unsigned pdus_ = 0;
  // --- identical in every request of a login
  std::array<uint8_t, 6> isid_{};
  uint16_t tsih_ = 0;
  uint16_t cid_ = 0;
  uint32_t itt_ = 0;
  uint32_t first_cmd_sn_ = 0;

  LoginKeys keys_;
  TextCollector request_;
  size_t answer_sent_ = 0;  // bytes of keys_.answer()
  Parameters parameters_;
  LoginRefusal refusal_;
};

}  // namespace sluice::iscsi
