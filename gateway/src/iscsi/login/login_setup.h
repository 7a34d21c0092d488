// What a login is made of: the settings of the portal, the stages, and how it fails.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "iscsi/login/forwarding_access.h"
#include "iscsi/login/parameters.h"
#include "nexus/exports.h"

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

// Why a login fails.
struct LoginRefusal {
  LoginStatus status = LoginStatus::kSuccess;
  std::string reason;    // one sentence, for the log
  std::string moved_to;  // host:port, with kTargetMovedTemporarily
};

// CSG and NSG (RFC 7143 §11.12.3).
enum class LoginStage : uint8_t { kSecurity = 0, kOperational = 1, kFullFeature = 3 };

struct LoginSetup {
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

}  // namespace sluice::iscsi
