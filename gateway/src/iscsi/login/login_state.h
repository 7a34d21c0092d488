// The implementation of Login, shared by login.cc (PDUs, stages) and login_keys.cc (keys).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "iscsi/login/chap.h"
#include "iscsi/login/login.h"
#include "iscsi/login/negotiation.h"
#include "iscsi/login/text.h"

namespace sluice::iscsi {

struct Login::State {
  // CSG and NSG (RFC 7143 §11.12.3).
  enum Stage : uint8_t { kSecurity = 0, kOperational = 1, kFullFeature = 3 };

  explicit State(Setup given);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // --- login.cc: return false or kFailed after a call of refuse()
  bool refuse(LoginStatus why, std::string_view sentence);
  bool check_header(const pdu::Bhs& header);
  bool check_constant_fields(const pdu::Bhs& header);
  Outcome take_request(const pdu::Bhs& header, ByteView text, LoginAnswer* answer);
  bool take_text(const pdu::Bhs& header);
  Outcome send_part(const pdu::Bhs& header, LoginAnswer* answer);
  Outcome transit(const pdu::Bhs& header, LoginAnswer* answer);
  bool leave_security();
  void succeed();

  // --- login_keys.cc
  bool check_places(std::span<const TextPair> pairs);
  bool may_come_elsewhere(const KeyRule& rule) const;
  bool take_identity(std::span<const TextPair> pairs);
  bool take_first_identity(std::span<const TextPair> pairs);
  bool check_repeated_identity(const TextPair& pair);
  bool normalise_target(std::string_view name);
  void find_access();
  bool enter();
  bool belongs_here();
  bool has_room();
  bool admit_gateway(std::span<const TextPair> pairs);
  bool take_security(std::span<const TextPair> pairs);
  bool choose_method(std::string_view offered);
  bool take_late_method(std::string_view offered);
  bool run_chap(std::span<const TextPair> pairs);
  bool take_operational(std::span<const TextPair> pairs);

  Setup setup;
  bool started = false;   // the first request has arrived
  bool finished = false;  // succeeded or failed
  Stage stage = kSecurity;
  unsigned pdus = 0;

  // --- identical in every request of a login
  std::array<uint8_t, 6> isid{};
  uint16_t tsih = 0;
  uint16_t cid = 0;
  uint32_t itt = 0;
  uint32_t first_cmd_sn = 0;

  // --- identity
  bool identified = false;
  Parameters who;  // names, session type, authentication: override the outcome at the end
  std::shared_ptr<lun::Target> target;
  lun::HostAccess access;
  bool admitted = false;  // to the target or to discovery
  std::string refusal;    // reason of the refusal, for the log
  Origin origin;          // for a forwarding port
  Nanos host_age = 0;

  // --- authentication
  bool authenticated = false;
  std::unique_ptr<Chap> chap;

  // --- negotiation
  Negotiation negotiation;
  bool declared = false;  // this side's keys were sent
  bool offers_made = false;
  bool offered_just_now = false;
  Parameters parameters;

  TextCollector request;
  std::string response;  // of the current exchange
  size_t response_sent = 0;
  bool sending = false;  // parts of it are still to be sent

  std::string moved_to;  // host:port, with kTargetMovedTemporarily
  LoginStatus status = LoginStatus::kSuccess;
  std::string reason;
};

}  // namespace sluice::iscsi
