// What the keys of a login mean (RFC 7143 §6.3, §13): who the initiator is, which target it wants,
// how it authenticates, and what it negotiates. login.h has the PDUs and the stages.
//
// Threads: one reactor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "iscsi/forwarding_wire.h"
#include "iscsi/login/chap.h"
#include "iscsi/login/forwarder.h"
#include "iscsi/login/keys.h"
#include "iscsi/login/login_setup.h"
#include "iscsi/login/negotiation.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text.h"
#include "nexus/target.h"

namespace sluice::iscsi {

class LoginKeys {
 public:
  explicit LoginKeys(LoginSetup setup);
  ~LoginKeys();
  LoginKeys(const LoginKeys&) = delete;

  struct Request {
    LoginStage stage = LoginStage::kSecurity;
    std::array<uint8_t, 6> isid{};
    bool wants_transit = false;
  };
  // Processes the keys of one complete request, and prepares answer(). False: refusal() says why
  // the login fails. No other function may be called then.
  bool take(const Request& request, std::span<const TextPair> pairs);
  // The keys of the answer to the last request.
  const std::string& answer() const { return answer_; }
  const LoginRefusal& refusal() const { return refusal_; }

  enum class Security : uint8_t {
    kDone,
    kUnderWay,  // the authentication has begun
    kRefused,   // as a failed take()
  };
  // Whether the initiator may leave the security stage.
  Security leave_security();
  // The last answer has offers, which the initiator has to answer before the stage ends.
  bool awaits_answers() const { return offers_ == Offers::kInLastAnswer; }
  // Completes the negotiation. False: as take().
  bool finish();
  // The outcome of the login, after finish().
  Parameters take_parameters();

  // The longest data segment of an answer.
  uint32_t segment_length() const { return negotiation_.outcome().max_send_data_segment_length; }
  const std::shared_ptr<lun::Target>& target() const { return target_; }  // null for discovery
  const Origin& origin() const { return forwarder_.origin; }              // for a forwarding port
  const std::string& initiator() const { return who_.initiator_name; }    // empty: not known yet
  const std::string& target_name() const { return who_.target_name; }     // empty: not known yet

 private:
  enum class Initiator : uint8_t { kUnknown, kIdentified, kAuthenticated };
  // Of keys that the initiator left out (Negotiation::offer_missing()).
  enum class Offers : uint8_t { kNotMade, kInLastAnswer, kMade };

  // Returns false.
  bool refuse(LoginStatus status, std::string_view reason);
  bool refuse(LoginRefusal refusal);
  bool authenticated() const { return initiator_ == Initiator::kAuthenticated; }
  // They return false after a call of refuse().
  bool check_key_use(std::span<const TextPair> pairs);
  bool may_come_elsewhere(const KeyRule& rule) const;
  bool take_identity(std::span<const TextPair> pairs);
  bool take_first_identity(std::span<const TextPair> pairs);
  bool check_repeated_identity(const TextPair& pair);
  bool normalise_target(std::string_view name);
  void find_access();
  bool enter();
  bool admit_gateway(std::span<const TextPair> pairs);
  bool take_security(std::span<const TextPair> pairs);
  bool choose_method(std::string_view offered);
  bool take_late_method(std::string_view offered);
  bool run_chap(std::span<const TextPair> pairs);
  bool take_operational(std::span<const TextPair> pairs);
  void make_offers();

  LoginSetup setup_;
  Request request_;  // the last one
  std::string answer_;
  LoginRefusal refusal_;

  // --- identity
  Initiator initiator_ = Initiator::kUnknown;
  Parameters who_;  // names, session type, authentication: override the outcome at the end
  std::shared_ptr<lun::Target> target_;
  lun::HostAccess access_;
  bool admitted_ = false;  // to the target or to discovery
  std::string denial_;     // why it is not admitted, for the log
  Forwarder forwarder_;    // for a forwarding port

  std::unique_ptr<Chap> chap_;  // null: no authentication has begun
  Negotiation negotiation_;
  Offers offers_ = Offers::kNotMade;
  bool declared_ = false;  // this side's keys were sent
};

}  // namespace sluice::iscsi
