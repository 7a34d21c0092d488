// The login of a gateway at another gateway's forwarding port: the initiator's side of RFC 7143 §6,
// with mutual CHAP (SHA-256), as a state machine without I/O. It takes four requests and answers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "iscsi/forwarding_wire.h"
#include "iscsi/login/chap.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text.h"
#include "pdu/bhs.h"

namespace sluice::forward {

class InitiatorLogin {
 public:
  struct Setup {
    std::string initiator_name;
    std::array<uint8_t, 6> isid{};
    std::string target_name;  // empty: a session that only checks whether the peer is alive
    iscsi::Origin origin;
    Nanos host_age = 0;  // of that nexus
    iscsi::ChapPair key;
    iscsi::Offer offer;
    std::function<void(uint8_t* out, size_t n)> random;
  };
  explicit InitiatorLogin(Setup setup) : setup_(std::move(setup)) {}
  ~InitiatorLogin() { iscsi::wipe(&setup_.key); }
  InitiatorLogin(const InitiatorLogin&) = delete;

  struct Request {
    uint8_t flags = 0;  // T, CSG, NSG
    std::string text;
  };
  Request first();

  enum class Outcome : uint8_t {
    kGoOn,    // send *next
    kDone,    // full feature phase; parameters() are valid
    kFailed,  // reason() says why
  };
  // Processes one Login Response with its text.
  Outcome on_response(const pdu::Bhs& header, std::string_view text, Request* next);

  const std::array<uint8_t, 6>& isid() const { return setup_.isid; }
  const iscsi::Parameters& parameters() const { return parameters_; }
  // Of the login response that refused; 0: this gateway refused.
  uint16_t status() const { return status_; }
  const std::string& reason() const { return reason_; }

 private:
  enum class Step : uint8_t { kMethod, kChallenge, kProof, kOperational, kOver };
  Outcome fail(std::string why);
  Outcome offer_algorithm(Request* next);
  Outcome prove(std::span<const iscsi::TextPair> pairs, Request* next);
  Outcome check_proof(std::span<const iscsi::TextPair> pairs, Request* next);
  Outcome agree(std::span<const iscsi::TextPair> pairs);

  Setup setup_;
  Step step_ = Step::kMethod;
  uint8_t identifier_ = 0;
  std::array<uint8_t, 32> challenge_{};
  iscsi::Parameters parameters_;
  uint16_t status_ = 0;
  std::string reason_;
};

}  // namespace sluice::forward
