// The Login Requests and Login Responses of one connection as PDUs (RFC 7143 §11.12, §11.13);
// login/login.h decides about them.
//
// Threads: one reactor.
#pragma once

#include <cstdint>
#include <string>

#include "iscsi/command_window.h"
#include "iscsi/login/login.h"
#include "iscsi/outbox.h"
#include "iscsi/pdu_writer.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class LoginExchange {
 public:
  LoginExchange(Login::Setup setup, Outbox& out);

  // Prepares the answer. The first PDU of another kind fails the login.
  Login::Outcome on_pdu(const pdu::Pdu& pdu);
  // Changes the prepared answer into a refusal.
  void refuse(LoginStatus status, std::string reason);
  // The prepared answer opens the session with this TSIH.
  void accept(uint16_t tsih);
  // Sends the prepared answer. `window`: of the session that it opens, else null.
  void send_answer(const CommandWindow* window);

  const Login& login() const { return login_; }
  // The StatSN of the next answer.
  uint32_t stat_sn() const { return stat_sn_; }
  // Of a login that failed, and why.
  LoginStatus status() const { return status_; }
  const std::string& reason() const { return reason_; }

 private:
  Login login_;
  PduWriter writer_;
  LoginAnswer answer_;  // it may wait until the nexus is claimed
  uint32_t stat_sn_ = 0;
  uint32_t cmd_sn_ = 0;  // of the last request
  LoginStatus status_ = LoginStatus::kSuccess;
  std::string reason_;
};

}  // namespace sluice::iscsi
