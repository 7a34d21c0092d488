#include "iscsi/session.h"

#include <algorithm>
#include <utility>

#include "base/canary.h"
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

// Immediate commands bring unsolicited data too and take no place in the window.
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
      told_max_(window_.max()),
      hearing_(shard.now),
      started_(shard.now) {
  writer_.set_digests(parameters_.header_digest, parameters_.data_digest);
  answers_pings_ = forwarding() && !parameters_.discovery;  // a forwarder does
  if (nexus_) nexus_->drop = [this](std::string why) { host_.drop(std::move(why)); };
}

Session::~Session() {
  if (waits_for_memory_) shard_.write_memory.leave(*this);
  if (nexus_) nexus_->drop = nullptr;
}

void Session::stamp(pdu::Bhs& header, bool takes_stat_sn) {
  if (takes_stat_sn) {
    hearing_.said(stat_sn_, shard_.now);
    out_.numbered();
  }
  header.set_stat_sn(takes_stat_sn ? stat_sn_++ : stat_sn_);
  told_max_ = window_.max();
  header.set_window(window_.expected(), told_max_);
}

// Whoever was told that the window is closed waits for a PDU that says otherwise. When a place
// became free without an answer going out, a NOP-In of its own carries the news (RFC 7143 §11.19).
void Session::announce_window() {
  const bool told_closed = serial_less(told_max_, window_.expected());
  if (!told_closed || window_.max() == told_max_ || closing_) [[likely]]
    return;
  pdu::Bhs& h = writer_.start(Opcode::kNopIn);
  h.set_flags(pdu::kFlagFinal);
  h.set_itt(pdu::kReservedTag);
  h.set_target_transfer_tag(pdu::kReservedTag);
  stamp(h, false);
  writer_.finish();
  host_.output_ready();
}

// Requests that carry a CmdSN are taken in its order; Data-Out and SNACK have none.
void Session::on_pdu(pdu::Pdu& pdu) {
  if (closing_) return;
  hearing_.confirmed(pdu.header.exp_stat_sn());
  const Opcode op = pdu.header.opcode();
  if (op == Opcode::kDataOut) return on_data_out(pdu);
  if (op == Opcode::kSnackRequest) {
    return reject(pdu.header, pdu::RejectReason::kSnackReject);
  }
  if (pdu.header.immediate()) return deliver(pdu, shard_.now);
  const CommandWindow::Verdict verdict = window_.judge(pdu.header.cmd_sn());
  // RFC 7143 §7.11: what is no request is refused, whatever stands where a CmdSN would.
  if (!carries_cmd_sn(op) && verdict != CommandWindow::Verdict::kNext) {
    return reject(pdu.header, pdu::RejectReason::kCommandNotSupported);
  }
  switch (verdict) {
    case CommandWindow::Verdict::kNext:
      window_.advance();
      deliver(pdu, shard_.now);
      if (!stashed_.empty()) deliver_stashed();
      announce_window();
      break;
    case CommandWindow::Verdict::kEarly:
      stash(pdu);
      break;
    case CommandWindow::Verdict::kOutside:
      break;  // RFC 7143 §4.2.2.1: silently ignored
  }
}

void Session::deliver(pdu::Pdu& pdu, Nanos arrived) {
  const bool in_window = !pdu.header.immediate();
  switch (pdu.header.opcode()) {
    case Opcode::kScsiCommand:
      return on_scsi_command(pdu, arrived);  // keeps its place until the task ends
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
  // Half the session's budget is the window's; more than that is not within FirstBurstLength.
  if (stashed_bytes_ + pdu.data_size > limits::kSessionMemory / 2) {
    return host_.drop("requests ahead of their order hold too much data");
  }
  stashed_bytes_ += pdu.data_size;
  auto copy = std::make_unique<pdu::Pdu>(pdu);
  stashed_.push_back({cmd_sn, std::move(copy), shard_.now});
}

void Session::deliver_stashed() {
  bool progress = true;
  while (progress && !closing_) {
    progress = false;
    for (size_t i = 0; i < stashed_.size(); ++i) {
      if (stashed_[i].cmd_sn != window_.expected()) continue;
      const std::unique_ptr<pdu::Pdu> pdu = std::move(stashed_[i].pdu);
      const Nanos arrived = stashed_[i].arrived;
      stashed_.erase(stashed_.begin() + static_cast<ptrdiff_t>(i));
      window_.advance();
      if (pdu) {
        stashed_bytes_ -= pdu->data_size;
        deliver(*pdu, arrived);
      } else {
        window_.release();
      }
      progress = true;
      break;
    }
  }
}

// A request that must not run any more although its number is still to come: the number counts as
// received.
void Session::forget_early(uint32_t cmd_sn) {
  for (Stashed& s : stashed_) {
    if (s.cmd_sn != cmd_sn) continue;
    if (s.pdu) stashed_bytes_ -= s.pdu->data_size;
    s.pdu.reset();
    return;
  }
  stashed_.push_back({cmd_sn, nullptr, 0});
}

// RFC 7143 §7.8: a PDU whose data is damaged is rejected and forgotten. A command then leaves a
// gap in CmdSN that the initiator heals by starting over (ERL 0).
void Session::on_data_digest_error(const pdu::Pdu& pdu) {
  if (closing_) return;
  reject(pdu.header, pdu::RejectReason::kDataDigestError);
  if (pdu.header.opcode() != Opcode::kDataOut) return;
  Task* task = table_.find(pdu.header.itt());
  if (!task || task->aborted || !task->write) return;
  if (pdu.header.target_transfer_tag() != pdu::kReservedTag) came(task, pdu.data_size);
  if (task->fail_asc != 0) {
    discard_failed(task, pdu.header);
  } else {
    fail_data(task, 0x47, 0x05, pdu.header);
  }
  request_bursts();
}

bool Session::needs_hold(Task& task) const {
  if (held_head_) return true;
  if (!task.read) return false;
  return !shard_.write_memory.admits_read(task.expected_length, out_.bytes() + reads_running_,
                                          task.refused_since);
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
  if (!budget_waiters_.empty()) resume_budget_waiters();
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
  if (std::exchange(task->admitted, false)) --admitted_;
  if (task->waits_for_budget) std::erase(budget_waiters_, task);
  const bool cut_off = task->command.aborted || task->outstanding != 0 || task->waits_for_burst;
  stop_asking(task);
  came(task, task->outstanding);  // or never will: what still does is of no task
  task->command.data_out.clear();
  task->command.data_in.clear();
  task->session = nullptr;
  for (const uint32_t itt : task->abort_itts) {
    if (!closing_) answer_function(itt, pdu::TaskResponse::kFunctionComplete);
  }
  task->abort_itts.clear();
  pool_.give_back(task);
  announce_window();
  if (cut_off) return ask_others_later();
  if (!budget_waiters_.empty()) resume_budget_waiters();
}

void Session::tick(Nanos now, Nanos last_heard) {
  const Settings& s = shard_.gateway->settings;
  if (closing_) return;
  if (nexus_) nexus_->tick();
  if (closing_) return;
  if (forwarding() && now - token_sent_ >= limits::kTokenInterval) send_token();
  if (parameters_.discovery) {
    // NOPs have no place there (RFC 7143 §4.3); it asks its question and leaves.
    if (now - last_heard >= limits::kDiscoverySilence) host_.drop("discovery session left idle");
    return;
  }
  announce_window();
  keep_fresh();
  if (s.nop_silence == 0 || lacks(Guard::kPing)) return;
  if (ping_tag_ != pdu::kReservedTag) {
    // DESIGN R6: a peer that answered pings before and doesn't now is gone, or doesn't hear us.
    if (answers_pings_) {
      if (now - ping_sent_ < s.nop_timeout || hearing_.since() >= ping_sent_) return;
      if (lacks(Guard::kClose)) return;
      shard_.counters->nop_timeouts.add();
      return host_.drop("no answer to NOP-In");
    }
    if (last_heard < ping_sent_) return;
    ping_tag_ = pdu::kReservedTag;
  }
  // The first ping goes out at once: whether it is answered is known before it counts.
  const Nanos silence = now - (answers_pings_ ? hearing_.since() : last_heard);
  if (ping_sent_ == 0 || silence >= s.nop_silence) send_ping();
}

// Commands that wait, for data or for a range, while their host is known to hear us are not stale;
// nor is a forwarded one between its steps, once it has begun while its token was alive
// (decisions/2026-11-21-forwarding.md).
void Session::keep_fresh() {
  if (!answers_pings_ || pool_.in_use() == 0 || lacks(Guard::kAge)) return;
  const Nanos until = hearing_.since() + limits::kDiscardSilence;
  table_.for_each([until, this](Task* task) {
    if (!forwarding() || task->command.submitted) task->command.fresh_until = until;
  });
}

void Session::close(bool lost, std::function<void()> drained) {
  if (drained_) return drained();
  on_drained_.push_back(std::move(drained));
  if (closing_) return;
  closing_ = true;
  stashed_.clear();
  stashed_bytes_ = 0;
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
