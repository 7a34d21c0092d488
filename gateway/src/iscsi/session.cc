#include "iscsi/session.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace sluice::iscsi {
namespace {

using pdu::Opcode;

// The window is also a memory bound: even if every command brings all the unsolicited data it may,
// half the session's budget holds it; the other half is for R2Ts (DESIGN R14).
uint32_t fits(size_t memory, const Parameters& p) {
  return static_cast<uint32_t>(memory / std::max(p.first_burst_length, uint32_t{8192}));
}

uint32_t window_size(const Settings& settings, const Parameters& p) {
  return std::clamp<uint32_t>(
      std::min(settings.command_window, fits(limits::kSessionMemory / 2, p)), 1,
      limits::kMaxCommandWindow);
}

// Immediate commands bring unsolicited data, too, and occupy no number of the window.
uint32_t immediate_limit(const Parameters& p) {
  return std::clamp<uint32_t>(fits(limits::kSessionMemory / 8, p), 1,
                              limits::kMaxImmediateCommands);
}

// Whether the opcode is one of those an initiator numbers (RFC 7143 §4.2.2.1).
bool carries_cmd_sn(Opcode op) {
  switch (op) {
    case Opcode::kNopOut:
    case Opcode::kScsiCommand:
    case Opcode::kTaskManagementRequest:
    case Opcode::kLoginRequest:
    case Opcode::kTextRequest:
    case Opcode::kLogoutRequest:
      return true;
    default:
      return false;
  }
}

const char* state_text(const SessionContext& session) {
  if (session.closing()) return "closing";
  return session.state() == SessionContext::State::kLogoutRequested ? "logout-asked" : "logged-in";
}

}  // namespace

Session::Session(Shard& shard, SessionHost& host, Outbox& out, Start start)
    : context_(shard, host, std::move(start.parameters), std::move(start.nexus)),
      tsih_(start.tsih),
      cid_(start.cid),
      text_({shard.gateway->exports, &context_.parameters, std::move(start.local_address)}),
      window_(start.cmd_sn, window_size(shard.gateway->settings, context_.parameters)),
      liveness_(shard.now),
      writer_(context_, out, window_, liveness_, start.stat_sn),
      tasks_(window_, immediate_limit(context_.parameters)),
      stuck_share_(tasks_, context_.nexus.get()),
      r2t_(context_, writer_, transfer_tags_),
      data_in_(context_, writer_),
      functions_(writer_),
      execution_(context_, tasks_, writer_, r2t_, data_in_, functions_),
      data_out_(context_, tasks_, writer_, r2t_, execution_),
      freshness_(context_, liveness_, tokens_),
      commands_(context_, window_, tasks_, writer_, freshness_, data_out_, execution_),
      task_management_(context_, window_, early_, tasks_, writer_, functions_, execution_),
      nops_(context_, writer_, transfer_tags_, liveness_, tokens_) {
  if (context_.forwarding() && !context_.parameters.discovery) liveness_.expect_pongs();
  if (context_.nexus) {
    context_.nexus->drop = [this](std::string why) { context_.host.drop(std::move(why)); };
  }
}

Session::~Session() {
  if (context_.nexus) context_.nexus->drop = nullptr;
}

void Session::greet() { nops_.renew_token(); }

// Requests that carry a CmdSN are executed in its order. Data-Out and SNACK carry none.
void Session::on_pdu(pdu::Pdu& pdu) {
  if (context_.closing()) return;
  liveness_.record_acked(pdu.header.exp_stat_sn());
  const Opcode op = pdu.header.opcode();
  if (op == Opcode::kDataOut) return data_out_.on_data_out(pdu);
  if (op == Opcode::kSnackRequest) {
    return writer_.reject(pdu.header, pdu::RejectReason::kSnackReject);
  }
  if (pdu.header.immediate()) {
    deliver(pdu, context_.shard.now);
    if (!early_.empty()) deliver_early();
    return;
  }
  const CommandWindow::Verdict verdict = window_.judge(pdu.header.cmd_sn());
  // RFC 7143 §7.11: a PDU that is no request is rejected, whatever its CmdSN field contains.
  if (!carries_cmd_sn(op) && verdict != CommandWindow::Verdict::kNext) {
    return writer_.reject(pdu.header, pdu::RejectReason::kCommandNotSupported);
  }
  switch (verdict) {
    case CommandWindow::Verdict::kNext:
      window_.advance();
      deliver(pdu, context_.shard.now);
      if (!early_.empty()) deliver_early();
      writer_.announce_window();
      break;
    case CommandWindow::Verdict::kEarly:
      if (early_.add(pdu, context_.shard.now)) break;
      return context_.host.drop("requests ahead of their order hold too much data");
    case CommandWindow::Verdict::kOutside:
      break;  // RFC 7143 §4.2.2.1: silently ignored
  }
}

void Session::deliver(pdu::Pdu& pdu, Nanos arrived) {
  const bool in_window = !pdu.header.immediate();
  switch (pdu.header.opcode()) {
    case Opcode::kScsiCommand:
      // Its number stays occupied until the task ends.
      return commands_.on_scsi_command(pdu, arrived);
    case Opcode::kNopOut:
      if (in_window) window_.release();
      return nops_.on_nop_out(pdu);
    case Opcode::kTaskManagementRequest:
      if (in_window) window_.release();
      return task_management_.on_request(pdu);
    case Opcode::kTextRequest:
      if (in_window) window_.release();
      return on_text(pdu);
    case Opcode::kLogoutRequest:
      if (in_window) window_.release();
      return on_logout(pdu);
    case Opcode::kLoginRequest:
      // RFC 7143 §6.1: no login in full feature phase.
      if (in_window) window_.release();
      return context_.host.drop("login request in full feature phase");
    default:
      if (in_window) window_.release();
      return writer_.reject(pdu.header, pdu::RejectReason::kCommandNotSupported);
  }
}

void Session::deliver_early() {
  while (!context_.closing()) {
    const auto request = early_.take(window_.expected());
    if (!request) return;
    window_.advance();
    if (request->pdu) {
      deliver(*request->pdu, request->arrived);
    } else {
      window_.release();
    }
  }
}

// RFC 7143 §7.8: a PDU whose data is damaged is rejected and discarded. A command then leaves a gap
// in CmdSN, which the initiator closes by a new session (ERL 0).
void Session::on_data_digest_error(const pdu::Pdu& pdu) {
  if (context_.closing()) return;
  writer_.reject(pdu.header, pdu::RejectReason::kDataDigestError);
  if (pdu.header.opcode() == Opcode::kDataOut) data_out_.on_digest_error(pdu);
}

void Session::resume() {
  if (execution_.resume()) r2t_.memory_came_back();
}

void Session::tick(Nanos last_received) {
  if (context_.nexus) context_.nexus->tick();
  if (context_.closing()) return;
  nops_.renew_token();
  if (context_.parameters.discovery) {
    // It carries no NOPs (RFC 7143 §4.3). An initiator sends its requests at once and logs out.
    if (context_.shard.now - last_received >= limits::kDiscoverySilence) {
      context_.host.drop("discovery session left idle");
    }
    return;
  }
  stuck_share_.update();
  writer_.announce_window();
  freshness_.extend(tasks_);
  nops_.check_peer(last_received);
}

void Session::on_text(const pdu::Pdu& pdu) {
  std::string text;
  text.reserve(pdu.data_size);
  for (const Slice& piece : pdu.data) text.append(as_text({piece.data, piece.size}));
  const TextExchange::Answer answer = text_.on_request(pdu.header, as_bytes(text));
  if (answer.kind == TextExchange::Answer::Kind::kReject) {
    return writer_.reject(pdu.header, answer.reason);
  }
  pdu::Bhs& h = writer_.start(Opcode::kTextResponse);
  h = answer.header;
  h.set_opcode(Opcode::kTextResponse);
  writer_.stamp_status(h);
  writer_.copy(as_bytes(answer.text));
  writer_.finish();
  writer_.output_ready();
}

// RFC 7143 §11.14, §11.15.
void Session::on_logout(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  const uint8_t reason = h.flags() & 0x7f;
  const uint16_t cid = h.u16(20);
  const uint32_t itt = h.itt();
  // RFC 7143 §11.15.1: 1 = CID not found, 2 = connection recovery not supported.
  if (reason > 2) return writer_.reject(h, pdu::RejectReason::kInvalidPduField);
  if (reason != 0 && cid != cid_) return send_logout_response(itt, 1);
  if (reason == 2) return send_logout_response(itt, 2);
  const auto answer = [this, itt] {
    send_logout_response(itt, 0);
    context_.host.finish();
  };
  close(false, answer, [] {});
}

void Session::send_logout_response(uint32_t itt, uint8_t response) {
  pdu::Bhs& h = writer_.start(Opcode::kLogoutResponse);
  h.set_flags(pdu::kFlagFinal);
  h.put8(2, response);
  h.set_itt(itt);
  writer_.stamp_status(h);
  h.put16(40, static_cast<uint16_t>(context_.parameters.default_time2wait));
  h.put16(42, static_cast<uint16_t>(context_.parameters.default_time2retain));
  writer_.finish();
  writer_.output_ready();
}

void Session::ask_logout(uint16_t seconds) {
  if (context_.state() != SessionContext::State::kLoggedIn) return;
  context_.enter(SessionContext::State::kLogoutRequested);
  pdu::Bhs& h = writer_.start(Opcode::kAsyncMessage);
  h.set_flags(pdu::kFlagFinal);
  h.put32(16, pdu::kReservedTag);
  writer_.stamp_status(h);
  h.put8(36, static_cast<uint8_t>(pdu::AsyncEvent::kLogoutRequest));
  h.put16(42, seconds);  // Parameter3: Time2Wait for the logout
  writer_.finish();
  writer_.output_ready();
}

void Session::close(bool lost, std::function<void()> ended, std::function<void()> drained) {
  const bool has_ended = context_.state() >= SessionContext::State::kEnded;
  if (has_ended) {
    ended();
  } else {
    on_ended_.push_back(std::move(ended));
  }
  if (context_.state() == SessionContext::State::kDrained) return drained();
  on_drained_.push_back(std::move(drained));
  if (context_.closing()) return;
  context_.enter(SessionContext::State::kClosing);
  early_.clear();
  execution_.end_all_unstarted();
  if (!context_.nexus) {
    all_ended();
    return all_drained();
  }
  const std::weak_ptr<Session*> self = self_;
  const auto call = [self](void (Session::*then)()) {
    return [self, then] {
      if (const auto alive = self.lock()) ((*alive)->*then)();
    };
  };
  context_.nexus->close(lost, call(&Session::all_drained), call(&Session::all_ended));
}

void Session::all_ended() {
  context_.enter(SessionContext::State::kEnded);
  for (const auto& tell : std::exchange(on_ended_, {})) tell();
}

void Session::all_drained() {
  context_.enter(SessionContext::State::kDrained);
  for (const auto& tell : std::exchange(on_drained_, {})) tell();
}

void Session::describe(SessionView* view) const {
  view->parameters = context_.parameters;
  view->tsih = tsih_;
  view->cid = cid_;
  view->state = state_text(context_);
  view->uptime = context_.shard.now - context_.started;
  view->commands = commands_.commands();
  view->reads = commands_.reads();
  view->writes = commands_.writes();
  view->in_flight = tasks_.in_use();
  view->answered = execution_.answers().count();
  view->answered_time = execution_.answers().time();
  view->data_in_bytes = data_in_.bytes();
  view->data_out_bytes = data_out_.bytes();
  view->task_functions = task_management_.requests();
  view->rejects = writer_.rejects();
  view->exp_cmd_sn = window_.expected();
  view->max_cmd_sn = window_.max();
  view->stat_sn = writer_.stat_sn();
}

}  // namespace sluice::iscsi
