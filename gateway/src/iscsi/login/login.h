// The login phase (RFC 7143 §6) of one connection as a state machine without I/O: requests in,
// answers out. It authenticates (CHAP), negotiates and determines the session's identity. It
// neither creates nor ends sessions: with the last answer the caller takes over, and may have to
// end an older session first (reinstatement, RFC 7143 §6.3.5).
//
// Threads: one reactor. The caller supplies the time and enforces kLoginTimeout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "iscsi/forwarding_wire.h"
#include "iscsi/login/forwarding_access.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text_exchange.h"
#include "nexus/exports.h"
#include "pdu/bhs.h"

namespace sluice::iscsi {

class SessionDirectory;

// RFC 7143 §11.13.5: class << 8 | detail.
enum class LoginStatus : uint16_t {
  kSuccess = 0x0000,
  kTargetMovedTemporarily = 0x0101,
  kTargetMovedPermanently = 0x0102,
  kInitiatorError = 0x0200,
  kAuthenticationFailure = 0x0201,
  kAuthorizationFailure = 0x0202,
  kNotFound = 0x0203,
  kTargetRemoved = 0x0204,
  kUnsupportedVersion = 0x0205,
  kTooManyConnections = 0x0206,
  kMissingParameter = 0x0207,
  kCannotIncludeInSession = 0x0208,
  kSessionTypeNotSupported = 0x0209,
  kSessionDoesNotExist = 0x020a,
  kInvalidDuringLogin = 0x020b,
  kTargetError = 0x0300,
  kServiceUnavailable = 0x0301,
  kOutOfResources = 0x0302,
};

// One PDU to send. The header is complete except for StatSN, ExpCmdSN and MaxCmdSN, which the
// connection sets; `text` is its data segment.
struct LoginAnswer {
  pdu::Bhs header;
  std::string text;
};

class Login {
 public:
  struct Setup {
    const lun::Exports* exports = nullptr;
    const SessionDirectory* sessions = nullptr;  // null: no session is known or counted
    Offer offer;
    uint16_t tpgt = 1;          // of the portal that accepted the connection
    std::string local_address;  // "ip:port" the initiator connected to
    // Fills `n` cryptographically secure random bytes (CHAP challenge). Tests inject a
    // deterministic function.
    std::function<void(uint8_t* out, size_t n)> random;
    // For a forwarding port: accepts gateways only, with X-dev.sluice.Origin and mutual CHAP. Null:
    // hosts.
    const ForwardingAccess* forwarding = nullptr;
    // Whether a CHAP response of this initiator is evaluated now; false: it is refused as a wrong
    // one. Empty: always. Not called for a forwarding port.
    std::function<bool(std::string_view initiator)> may_try = {};
  };
  explicit Login(Setup setup);
  ~Login();

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
  const Parameters& parameters() const;
  const std::shared_ptr<lun::Target>& target() const;  // null for discovery
  const Origin& origin() const;                        // for a forwarding port
  // Valid after the first request.
  uint16_t requested_tsih() const;  // if not 0, the caller checks whether that session exists
  uint16_t cid() const;
  uint32_t first_cmd_sn() const;         // CmdSN of the login
  const std::string& initiator() const;  // empty before the name has arrived
  // For the log and the metrics after kFailed: the status and one sentence.
  LoginStatus status() const;
  const std::string& reason() const;

  // Changes a prepared answer into a failure (no resources, session limit, no such session).
  static void fail(LoginAnswer* answer, LoginStatus status);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::iscsi
