#include "forward/forwarded_functions.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace sluice::forward {
namespace {

using pdu::TaskFunction;

constexpr uint32_t kFunctionBit = 0x80000000;
constexpr uint32_t kCountMask = 0x7ffff;

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

void ForwardedFunctions::post(std::function<void(bool)> done, bool carried_out) {
  context_.reactors->post(context_.reactor,
                          [done = std::move(done), carried_out] { done(carried_out); });
}

void ForwardedFunctions::add(lun::LinkFunction kind, uint64_t lun_field,
                             std::function<void(bool)> done) {
  functions_.push_back({kind, lun_field, std::move(done), 0, 0, now()});
}

uint32_t ForwardedFunctions::next_tag() {
  last_tag_ = (last_tag_ + 1) & kCountMask;
  return kFunctionBit | last_tag_;
}

ForwardedFunctions::Sent ForwardedFunctions::send(Stream& stream, TaskFunction function,
                                                  uint64_t lun_field, uint32_t about,
                                                  uint32_t about_cmd_sn) {
  if (sent_ >= limits::kMaxForwardFunctions) return {};
  ++sent_;
  Sent sent;
  sent.tag = next_tag();
  pdu::Bhs& h = stream.writer().start(pdu::Opcode::kTaskManagementRequest);
  stream.number(h, sent.tag, true);
  sent.cmd_sn = h.cmd_sn();
  h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | static_cast<unsigned>(function)));
  h.set_lun(lun_field);
  h.put32(20, about);
  h.put32(32, about_cmd_sn);
  stream.writer().finish();
  stream.flush();
  return sent;
}

void ForwardedFunctions::send_all(Stream& stream) {
  commands_.send_aborts([&](uint64_t lun_field, uint32_t tag, uint32_t cmd_sn) {
    return send(stream, TaskFunction::kAbortTask, lun_field, tag, cmd_sn).tag;
  });
  for (Function& f : functions_) {
    if (f.tag != 0) continue;
    const Sent sent = send(stream, code_of(f.kind), f.lun_field, pdu::kReservedTag, 0);
    if (sent.tag == 0) return;
    f.tag = sent.tag;
    f.cmd_sn = sent.cmd_sn;
  }
}

// Answers come in the order in which things ended at the owner: a command whose own answer didn't
// come before this ended without one.
void ForwardedFunctions::on_response(const pdu::Bhs& h) {
  const uint32_t tag = h.itt();
  if (sent_ != 0) --sent_;
  const bool rejected = h.u8(2) == static_cast<uint8_t>(pdu::TaskResponse::kFunctionRejected);
  const bool complete = h.u8(2) == static_cast<uint8_t>(pdu::TaskResponse::kFunctionComplete);
  if (commands_.on_abort_response(tag, rejected)) return;
  const auto it = std::find_if(functions_.begin(), functions_.end(),
                               [tag](const Function& f) { return f.tag == tag; });
  if (it == functions_.end()) return;
  if (rejected) {
    it->tag = 0;  // the owner has too many: again at the next tick
    return;
  }
  Function f = std::move(*it);
  functions_.erase(it);
  commands_.end_sent_before(f.lun_field, f.cmd_sn);
  post(std::move(f.done), complete);
}

void ForwardedFunctions::session_lost() {
  for (Function& f : functions_) {
    if (std::exchange(f.tag, 0) != 0) f.since = now();
  }
  sent_ = 0;
}

void ForwardedFunctions::end_all() {
  std::deque<Function> all;
  all.swap(functions_);
  for (Function& f : all) post(std::move(f.done), false);
}

// The volume may have a new owner while this one is unreachable. A reset that arrived here after
// another one was answered would be harmful.
void ForwardedFunctions::give_up_resets(Nanos older_than) {
  std::erase_if(functions_, [&](Function& f) {
    if (f.kind != lun::LinkFunction::kLogicalUnitReset || f.tag != 0) return false;
    if (now() - f.since < older_than) return false;
    post(std::move(f.done), false);
    return true;
  });
}

}  // namespace sluice::forward
