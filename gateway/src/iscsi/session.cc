#include "iscsi/session.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace sluice::iscsi {
namespace {

using pdu::Opcode;

// The window is also a memory bound: even if every command brings all the unsolicited data it may,
// half the session's budget holds it; the other half is for R2Ts (DESIGN R14).
uint32_t window_size(const Settings& settings, const Parameters& p) {
  const uint32_t burst = std::max(p.first_burst_length, uint32_t{8192});
  const auto fits = static_cast<uint32_t>(limits::kSessionMemory / 2 / burst);
  return std::clamp<uint32_t>(std::min(settings.command_window, fits), 1,
                              limits::kMaxCommandWindow);
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
      table_(window_.size() + limits::kMaxImmediateCommands),
      tsih_(start.tsih),
      cid_(start.cid),
      stat_sn_(start.stat_sn),
      started_(shard.now) {
  writer_.set_digests(parameters_.header_digest, parameters_.data_digest);
}

Session::~Session() = default;

void Session::stamp(pdu::Bhs& header, bool takes_stat_sn) {
  header.set_stat_sn(takes_stat_sn ? stat_sn_++ : stat_sn_);
  header.set_window(window_.expected(), window_.max());
}

// Requests that carry a CmdSN are taken in its order; Data-Out and SNACK have none.
void Session::on_pdu(pdu::Pdu& pdu) {
  if (closing_) return;
  const Opcode op = pdu.header.opcode();
  if (op == Opcode::kDataOut) return on_data_out(pdu);
  if (op == Opcode::kSnackRequest) {
    return reject(pdu.header, pdu::RejectReason::kSnackReject);
  }
  if (pdu.header.immediate()) return deliver(pdu);
  switch (window_.judge(pdu.header.cmd_sn())) {
    case CommandWindow::Verdict::kNext:
      window_.advance();
      deliver(pdu);
      if (!stashed_.empty()) deliver_stashed();
      break;
    case CommandWindow::Verdict::kEarly:
      stash(pdu);
      break;
    case CommandWindow::Verdict::kOutside:
      break;  // RFC 7143 §4.2.2.1: silently ignored
  }
}

void Session::deliver(pdu::Pdu& pdu) {
  const bool in_window = !pdu.header.immediate();
  switch (pdu.header.opcode()) {
    case Opcode::kScsiCommand:
      return on_scsi_command(pdu);  // keeps its place until the task ends
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

void Session::stash(pdu::Pdu& pdu) {
  const uint32_t cmd_sn = pdu.header.cmd_sn();
  for (const Stashed& s : stashed_) {
    if (s.cmd_sn == cmd_sn) return;  // a duplicate inside the window: ignored
  }
  auto copy = std::make_unique<pdu::Pdu>(pdu);
  stashed_.push_back({cmd_sn, std::move(copy)});
}

void Session::deliver_stashed() {
  bool progress = true;
  while (progress && !closing_) {
    progress = false;
    for (size_t i = 0; i < stashed_.size(); ++i) {
      if (stashed_[i].cmd_sn != window_.expected()) continue;
      const std::unique_ptr<pdu::Pdu> pdu = std::move(stashed_[i].pdu);
      stashed_.erase(stashed_.begin() + static_cast<ptrdiff_t>(i));
      window_.advance();
      deliver(*pdu);
      progress = true;
      break;
    }
  }
}

// RFC 7143 §7.8: a PDU whose data is damaged is rejected and forgotten. A command then leaves a
// gap in CmdSN that the initiator heals by starting over (ERL 0).
void Session::on_data_digest_error(const pdu::Pdu& pdu) {
  if (closing_) return;
  reject(pdu.header, pdu::RejectReason::kDataDigestError);
  if (pdu.header.opcode() != Opcode::kDataOut) return;
  if (Task* task = table_.find(pdu.header.itt())) fail_data(task, 0x47, 0x05);
}

bool Session::needs_hold(const Task& task) const {
  if (held_head_) return true;
  if (!task.read) return false;
  const size_t waiting = out_.bytes() + reads_running_;
  if (waiting == 0) return false;
  return waiting + task.expected_length > limits::kMaxOutputBytes ||
         shard_.lane.buffers->available() < size_t{task.expected_length} + BufferPool::kLargest;
}

void Session::resume() {
  while (held_head_ && !closing_) {
    Task* task = held_head_;
    held_head_ = nullptr;  // so that needs_hold() looks at memory only
    const bool hold = needs_hold(*task);
    held_head_ = task;
    if (hold) return;
    held_head_ = task->next;
    if (!held_head_) held_tail_ = nullptr;
    task->next = nullptr;
    start(task);
  }
}

void Session::end_task(Task* task) {
  table_.erase(task);
  if (task->in_window) {
    window_.release();
  } else {
    --immediate_tasks_;
  }
  data_held_ -= task->charged;
  task->charged = 0;
  task->command.data_out.clear();
  task->command.data_in.clear();
  task->session = nullptr;
  const bool answer_abort = std::exchange(task->abort_answers, false);
  const uint32_t abort_itt = task->abort_itt;
  pool_.give_back(task);
  if (answer_abort && !closing_) {
    send_task_response(abort_itt, pdu::TaskResponse::kFunctionComplete);
  }
  if (!budget_waiters_.empty()) resume_budget_waiters();
}

void Session::tick(Nanos now, Nanos last_heard) {
  const Settings& s = shard_.gateway->settings;
  if (closing_ || s.nop_silence == 0) return;
  if (ping_tag_ != pdu::kReservedTag) {
    // DESIGN R6: a peer that answered pings before and is silent now is gone.
    if (answers_pings_ && now - ping_sent_ >= s.nop_timeout && last_heard < ping_sent_) {
      shard_.counters->nop_timeouts.add();
      return host_.drop("no answer to NOP-In");
    }
    if (last_heard < ping_sent_) return;
    ping_tag_ = pdu::kReservedTag;
  }
  if (now - last_heard >= s.nop_silence) send_ping();
}

void Session::close(bool lost, std::function<void()> drained) {
  if (drained_) return drained();
  on_drained_.push_back(std::move(drained));
  if (closing_) return;
  closing_ = true;
  stashed_.clear();
  drop_unstarted(0, true);
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
