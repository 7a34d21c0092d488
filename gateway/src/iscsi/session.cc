#include "iscsi/session.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/safety_mutation.h"

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

}  // namespace

Session::Session(Shard& shard, SessionHost& host, Outbox& out, Start start)
    : shard_(shard),
      host_(host),
      out_(out),
      writer_(out),
      parameters_(std::move(start.parameters)),
      nexus_(std::move(start.nexus)),
      text_({shard.gateway->exports, &parameters_, std::move(start.local_address)}),
      window_(start.cmd_sn, window_size(shard.gateway->settings, parameters_)),
      pool_(window_.size() + limits::kMaxImmediateCommands),
      immediate_limit_(immediate_limit(parameters_)),
      table_(window_.size() + limits::kMaxImmediateCommands),
      tsih_(start.tsih),
      cid_(start.cid),
      stat_sn_(start.stat_sn),
      r2t_(shard, parameters_, *this),
      announced_max_(window_.max()),
      liveness_(shard.now),
      started_(shard.now) {
  writer_.set_digests(parameters_.header_digest, parameters_.data_digest);
  if (forwarding() && !parameters_.discovery) liveness_.expect_pongs();
  if (nexus_) nexus_->drop = [this](std::string why) { host_.drop(std::move(why)); };
}

Session::~Session() {
  if (nexus_) nexus_->drop = nullptr;
}

void Session::stamp(pdu::Bhs& header, bool takes_stat_sn) {
  if (takes_stat_sn) {
    liveness_.record_sent(stat_sn_, shard_.now);
    out_.numbered();
  }
  header.set_stat_sn(takes_stat_sn ? stat_sn_++ : stat_sn_);
  announced_max_ = window_.max();
  header.set_window(window_.expected(), announced_max_);
}

// An initiator whose window is closed waits for a PDU that opens it. If a number became free
// without a response, a NOP-In announces that (RFC 7143 §11.19).
void Session::announce_window() {
  const bool announced_closed = serial_less(announced_max_, window_.expected());
  if (!announced_closed || window_.max() == announced_max_ || closing_) [[likely]]
    return;
  pdu::Bhs& h = writer_.start(Opcode::kNopIn);
  h.set_flags(pdu::kFlagFinal);
  h.set_itt(pdu::kReservedTag);
  h.set_target_transfer_tag(pdu::kReservedTag);
  stamp(h, false);
  writer_.finish();
  host_.output_ready();
}

// Requests that carry a CmdSN are executed in its order. Data-Out and SNACK carry none.
void Session::on_pdu(pdu::Pdu& pdu) {
  if (closing_) return;
  liveness_.record_acked(pdu.header.exp_stat_sn());
  const Opcode op = pdu.header.opcode();
  if (op == Opcode::kDataOut) return on_data_out(pdu);
  if (op == Opcode::kSnackRequest) {
    return reject(pdu.header, pdu::RejectReason::kSnackReject);
  }
  if (pdu.header.immediate()) return deliver(pdu, shard_.now);
  const CommandWindow::Verdict verdict = window_.judge(pdu.header.cmd_sn());
  // RFC 7143 §7.11: a PDU that is no request is rejected, whatever its CmdSN field contains.
  if (!carries_cmd_sn(op) && verdict != CommandWindow::Verdict::kNext) {
    return reject(pdu.header, pdu::RejectReason::kCommandNotSupported);
  }
  switch (verdict) {
    case CommandWindow::Verdict::kNext:
      window_.advance();
      deliver(pdu, shard_.now);
      if (!early_.empty()) deliver_early();
      announce_window();
      break;
    case CommandWindow::Verdict::kEarly:
      if (early_.add(pdu, shard_.now)) break;
      return host_.drop("requests ahead of their order hold too much data");
    case CommandWindow::Verdict::kOutside:
      break;  // RFC 7143 §4.2.2.1: silently ignored
  }
}

void Session::deliver(pdu::Pdu& pdu, Nanos arrived) {
  const bool in_window = !pdu.header.immediate();
  switch (pdu.header.opcode()) {
    case Opcode::kScsiCommand:
      return on_scsi_command(pdu, arrived);  // its number stays occupied until the task ends
    case Opcode::kNopOut:
      if (in_window) window_.release();
      return on_nop_out(pdu);
    case Opcode::kTaskManagementRequest:
      if (in_window) window_.release();
      return on_task_management(pdu);
    case Opcode::kTextRequest:
      if (in_window) window_.release();
      return on_text(pdu);
    case Opcode::kLogoutRequest:
      if (in_window) window_.release();
      return on_logout(pdu);
    case Opcode::kLoginRequest:
      // RFC 7143 §6.1: no login in full feature phase.
      if (in_window) window_.release();
      return host_.drop("login request in full feature phase");
    default:
      if (in_window) window_.release();
      return reject(pdu.header, pdu::RejectReason::kCommandNotSupported);
  }
}

void Session::deliver_early() {
  while (!closing_) {
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
  if (closing_) return;
  reject(pdu.header, pdu::RejectReason::kDataDigestError);
  if (pdu.header.opcode() != Opcode::kDataOut) return;
  Task* task = table_.find(pdu.header.itt());
  if (!task || task->aborting() || !task->expects_data_out()) return;
  if (pdu.header.target_transfer_tag() != pdu::kReservedTag) {
    r2t_.on_solicited_bytes(task, pdu.data_size);
  }
  if (task->data_failed()) {
    discard_failed(task, pdu.header);
  } else {
    fail_data(task, 0x47, 0x05, pdu.header);
  }
  r2t_.request_bursts();
}

bool Session::lacks_output_memory(Task& task) const {
  if (!task.expects_data_in()) return false;
  return !shard_.write_quota.admits_read(task.expected_length, out_.bytes() + reads_running_,
                                         task.refused_since);
}

void Session::resume() {
  while (!held_.empty() && !closing_) {
    Task* task = held_.front();
    if (lacks_output_memory(*task)) return;
    held_.pop();
    start(task);
  }
  r2t_.memory_came_back();
}

void Session::end_task(Task* task) {
  table_.erase(task);
  if (task->slot == Task::Slot::kWindow) {
    window_.release();
  } else {
    --immediate_tasks_;
  }
  const bool cut_off = r2t_.end(task);
  task->command.data_out.clear();
  task->command.data_in.clear();
  task->session = nullptr;
  for (const uint32_t itt : task->abort_itts) {
    if (!closing_) answer_function(itt, pdu::TaskResponse::kFunctionComplete);
  }
  task->abort_itts.clear();
  task->enter(Task::State::kFree);
  pool_.give_back(task);
  announce_window();
  r2t_.admit_others(cut_off);
}

void Session::tick(Nanos now, Nanos last_heard) {
  const Settings& s = shard_.gateway->settings;
  if (closing_) return;
  if (nexus_) nexus_->tick();
  if (closing_) return;
  if (forwarding() && now - token_sent_ >= limits::kTokenInterval) send_token();
  if (parameters_.discovery) {
    // It carries no NOPs (RFC 7143 §4.3). An initiator sends its requests at once and logs out.
    if (now - last_heard >= limits::kDiscoverySilence) host_.drop("discovery session left idle");
    return;
  }
  announce_window();
  keep_fresh();
  if (s.nop_silence == 0 || mutation_disables(Guard::kPing)) return;
  const bool answers = liveness_.answers_pings();
  if (liveness_.ping_in_flight()) {
    const Nanos sent = liveness_.ping_sent();
    // DESIGN R6: a peer that answered pings before and does not now is gone, or receives nothing.
    if (answers) {
      if (now - sent < s.nop_timeout || liveness_.confirmed_until() >= sent) return;
      if (mutation_disables(Guard::kClose)) return;
      shard_.counters->nop_timeouts.add();
      return host_.drop("no answer to NOP-In");
    }
    if (last_heard < sent) return;
    liveness_.end_ping();
  }
  // The first ping goes out at once, so that the session knows early whether the peer answers
  // pings.
  const Nanos silence = now - (answers ? liveness_.confirmed_until() : last_heard);
  if (liveness_.ping_sent() == 0 || silence >= s.nop_silence) send_ping();
}

// A command that waits, for data or for a range, is not stale while its host is known to receive
// from us. A forwarded one is not stale between its steps if it began while its token was valid
// (gateway/decisions/forwarding.md).
void Session::keep_fresh() {
  if (!liveness_.answers_pings() || pool_.in_use() == 0 || mutation_disables(Guard::kAge)) return;
  const Nanos until = liveness_.confirmed_until() + limits::kDiscardSilence;
  table_.for_each([until, this](Task* task) {
    if (!forwarding() || task->command.submitted) task->command.fresh_until = until;
  });
}

void Session::close(bool lost, std::function<void()> drained) {
  if (drained_) return drained();
  on_drained_.push_back(std::move(drained));
  if (closing_) return;
  closing_ = true;
  r2t_.close();
  early_.clear();
  drop_unstarted(0, true, 0);
  const std::weak_ptr<Session*> self = self_;
  auto all_gone = [self] {
    if (const auto alive = self.lock()) (*alive)->all_drained();
  };
  if (!nexus_) return all_gone();
  nexus_->close(lost, all_gone);
}

void Session::all_drained() {
  drained_ = true;
  for (const auto& tell : std::exchange(on_drained_, {})) tell();
}

void Session::describe(SessionView* view) const {
  view->parameters = parameters_;
  view->tsih = tsih_;
  view->cid = cid_;
  view->state = closing_ ? "closing" : logout_asked_ ? "logout-asked" : "logged-in";
  view->uptime = shard_.now - started_;
  view->commands = commands_;
  view->in_flight = pool_.in_use();
  view->data_in_bytes = data_in_bytes_;
  view->data_out_bytes = data_out_bytes_;
  view->task_functions = task_functions_;
  view->rejects = rejects_;
  view->exp_cmd_sn = window_.expected();
  view->max_cmd_sn = window_.max();
  view->stat_sn = stat_sn_;
}

}  // namespace sluice::iscsi
