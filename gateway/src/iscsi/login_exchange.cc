#include "iscsi/login_exchange.h"

#include <utility>

namespace sluice::iscsi {
namespace {

constexpr unsigned kTsih = 14;  // of Login PDUs (RFC 7143 §11.12)

}  // namespace

LoginExchange::LoginExchange(Login::Setup setup, Outbox& out)
    : login_(std::move(setup)), writer_(out) {}

Login::Outcome LoginExchange::on_pdu(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  answer_ = {};
  cmd_sn_ = h.cmd_sn();
  if (h.opcode() != pdu::Opcode::kLoginRequest) {
    answer_.header.set_itt(h.itt());
    refuse(LoginStatus::kInvalidDuringLogin, "not a login request");
    return Login::Outcome::kFailed;
  }
  std::string text;
  text.reserve(pdu.data_size);
  for (const Slice& s : pdu.data) text.append(as_text({s.data, s.size}));
  const Login::Outcome outcome = login_.on_request(h, as_bytes(text), &answer_);
  if (outcome == Login::Outcome::kFailed || outcome == Login::Outcome::kDrop) {
    status_ = login_.status();
    reason_ = login_.reason();
  }
  return outcome;
}

void LoginExchange::refuse(LoginStatus status, std::string reason) {
  Login::fail(&answer_, status);
  status_ = status;
  reason_ = std::move(reason);
}

void LoginExchange::accept(uint16_t tsih) { answer_.header.put16(kTsih, tsih); }

void LoginExchange::send_answer(const CommandWindow* window) {
  pdu::Bhs& h = writer_.start(pdu::Opcode::kLoginResponse);
  h = answer_.header;
  h.set_opcode(pdu::Opcode::kLoginResponse);
  h.set_stat_sn(stat_sn_++);
  h.set_window(cmd_sn_, cmd_sn_);
  if (window) h.set_window(window->expected(), window->max());
  writer_.copy(as_bytes(answer_.text));
  writer_.finish();
}

}  // namespace sluice::iscsi
