// Aborts, task management and the end of the nexus, at the owner (RFC 7143 §11.5, §11.14).
#include <algorithm>

#include "commands/handler.h"
#include "forward/link.h"

namespace sluice::forward {
namespace {

using pdu::Opcode;
using pdu::TaskFunction;

constexpr uint32_t kFunctionBit = 0x80000000;

TaskFunction code_of(lun::LinkFunction kind) {
  switch (kind) {
    case lun::LinkFunction::kAbortTaskSet:
      return TaskFunction::kAbortTaskSet;
    case lun::LinkFunction::kClearTaskSet:
      return TaskFunction::kClearTaskSet;
    case lun::LinkFunction::kLogicalUnitReset:
      break;
  }
  return TaskFunction::kLogicalUnitReset;
}

}  // namespace

void LinkToOwner::end_aborted(Entry& entry) {
  lun::Command& c = *entry.command;
  forget(entry);
  c.aborted = true;
  lun::finish_good(c);
}

bool LinkToOwner::mark_aborting(Entry& entry) {
  if (std::exchange(entry.aborting, true)) return false;
  ++aborting_;
  return true;
}

void LinkToOwner::abort(lun::Command& command) {
  const auto alive = shared_from_this();
  Entry* entry = find(command);
  if (!entry || !mark_aborting(*entry)) return;
  if (entry->stage == Entry::Stage::kWaiting) return end_aborted(*entry);
  if (open()) pump_functions();
}

void LinkToOwner::function(lun::LinkFunction kind, uint64_t lun_field,
                           std::function<void(bool)> done) {
  const auto alive = shared_from_this();
  // What the owner has not heard of is not the function's business there.
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    const bool here = entry.command && entry.command->lun_field == lun_field;
    if (here && entry.stage == Entry::Stage::kWaiting) end_aborted(entry);
  }
  functions_.push_back({kind, lun_field, std::move(done), 0, 0, now()});
  if (fenced()) return end_functions();
  if (!closed_) pump();
}

// Sends one, if there is room for one more.
bool LinkToOwner::send_function(uint8_t function, uint64_t lun_field, uint32_t about,
                                uint32_t about_cmd_sn, uint32_t* tag, uint32_t* cmd_sn) {
  if (functions_sent_ >= limits::kMaxForwardFunctions) return false;
  ++functions_sent_;
  next_tag_ = (next_tag_ + 1) & 0x7ffff;
  *tag = kFunctionBit | next_tag_;
  pdu::Bhs& h = stream_->writer().start(Opcode::kTaskManagementRequest);
  stream_->number(h, *tag, true);
  *cmd_sn = h.cmd_sn();
  h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | function));
  h.set_lun(lun_field);
  h.put32(20, about);
  h.put32(32, about_cmd_sn);
  stream_->writer().finish();
  stream_->flush();
  return true;
}

void LinkToOwner::pump_functions() {
  if (aborting_ == 0 && functions_.empty()) return;
  uint32_t unused = 0;
  for (const auto& entry : entries_) {
    if (!entry->command || !entry->aborting || entry->abort_tag != 0) continue;
    if (entry->stage != Entry::Stage::kSent) continue;
    if (!send_function(static_cast<uint8_t>(TaskFunction::kAbortTask), entry->command->lun_field,
                       entry->tag, entry->cmd_sn, &entry->abort_tag, &unused)) {
      return;
    }
  }
  for (Function& f : functions_) {
    if (f.tag != 0) continue;
    const auto code = static_cast<uint8_t>(code_of(f.kind));
    if (!send_function(code, f.lun_field, pdu::kReservedTag, 0, &f.tag, &f.cmd_sn)) return;
  }
}

// Answers come in the order in which things ended at the owner: a command whose own answer didn't
// come before this ended without one.
void LinkToOwner::on_function_response(const pdu::Bhs& h) {
  const uint32_t tag = h.itt();
  if (functions_sent_ != 0) --functions_sent_;
  const bool rejected = h.u8(2) == static_cast<uint8_t>(pdu::TaskResponse::kFunctionRejected);
  const bool complete = h.u8(2) == static_cast<uint8_t>(pdu::TaskResponse::kFunctionComplete);
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.abort_tag != tag) continue;
    entry.abort_tag = 0;
    if (!rejected) end_aborted(entry);
    return;
  }
  const auto it = std::find_if(functions_.begin(), functions_.end(),
                               [tag](const Function& f) { return f.tag == tag; });
  if (it == functions_.end()) return;
  if (rejected) {
    it->tag = 0;  // the owner has too many: again at the next tick
    return;
  }
  const Function f = std::move(*it);
  functions_.erase(it);
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.stage != Entry::Stage::kSent) continue;
    const bool before = static_cast<int32_t>(entry.cmd_sn - f.cmd_sn) < 0;
    if (before && entry.command->lun_field == f.lun_field) end_aborted(entry);
  }
  context_.reactors->post(context_.reactor, [done = f.done, complete] { done(complete); });
}

void LinkToOwner::end_functions() {
  std::deque<Function> all;
  all.swap(functions_);
  for (Function& f : all) {
    context_.reactors->post(context_.reactor, [done = std::move(f.done)] { done(false); });
  }
}

// Ends resets that wait for a session. The volume may have a new owner while this one is
// unreachable. A reset that arrived here after another one was answered would be harmful.
void LinkToOwner::give_up_resets(Nanos older_than) {
  std::erase_if(functions_, [&](Function& f) {
    if (f.kind != lun::LinkFunction::kLogicalUnitReset || f.tag != 0) return false;
    if (now() - f.since < older_than) return false;
    context_.reactors->post(context_.reactor, [done = std::move(f.done)] { done(false); });
    return true;
  });
}

// RFC 7143 §11.14: reason 0, close the session. The owner answers when the nexus is drained.
void LinkToOwner::log_out() {
  logout_sent_ = true;
  pdu::Bhs& h = stream_->writer().start(Opcode::kLogoutRequest);
  next_tag_ = (next_tag_ + 1) & 0x7ffff;
  stream_->number(h, kFunctionBit | next_tag_, true);
  h.set_flags(pdu::kFlagFinal);
  stream_->writer().finish();
  stream_->flush();
}

// Whether it was lost or left is the origin's to tell its host: the nexus that follows has 29/07
// pending there. A nexus that ends has aborted its commands. One that goes on, with another process
// as owner, has not: they are answered, and so is task management, once the owner has had its time.
void LinkToOwner::close(bool, std::function<void()> done) {
  const auto alive = shared_from_this();
  closed_ = true;
  on_closed_ = std::move(done);
  if (!ended_) functions_.clear();
  give_up_waiting(0);
  if (open()) return log_out();
  if (stream_) lose_stream();  // still logging in: it had nothing to lose
  if (on_closed_ && !anything_lost()) finish_close();
}

void LinkToOwner::finish_close() {
  if (!on_closed_) return;
  context_.reactors->post(context_.reactor, std::exchange(on_closed_, nullptr));
}

}  // namespace sluice::forward
