// A task from its SCSI Command PDU (RFC 7143 §11.3) to its end.
#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/safety_mutation.h"
#include "iscsi/session.h"
#include "scsi/sense.h"
#include "unit/statistics.h"
#include "unit/unit.h"

namespace sluice::iscsi {
namespace {

using pdu::RejectReason;

struct Additional {
  std::vector<uint8_t>* long_cdb = nullptr;
  bool bidirectional = false;
  bool forwarded = false;  // `by_forwarder` is there
  Forwarded by_forwarder;
};

// Additional header segments (RFC 7143 §11.2.2): an extended CDB is taken, a bidirectional read
// length noted, and what forwarders say (forwarding_wire.h) where one may be. False when they are
// malformed.
bool parse_ahs(ByteView ahs, ByteView first16, bool forwarding, Additional* out) {
  while (!ahs.empty()) {
    if (ahs.size() < 4) return false;
    const uint32_t length = load_be16(ahs.data());
    const uint32_t whole = pdu::padded(3 + length);
    if (length == 0 || whole > ahs.size()) return false;
    switch (ahs[2]) {
      case 1:  // extended CDB: one reserved byte, then bytes 16.. of the CDB
        if (!out->long_cdb->empty()) return false;
        out->long_cdb->assign(first16.begin(), first16.end());
        out->long_cdb->insert(out->long_cdb->end(), ahs.begin() + 4, ahs.begin() + 3 + length);
        break;
      case 2:
        out->bidirectional = true;
        break;
      case kForwardedAhs:
        if (!forwarding || out->forwarded) return false;
        if (!load_forwarded(ahs, length, &out->by_forwarder)) return false;
        out->forwarded = true;
        break;
      default:
        return false;
    }
    ahs = ahs.subspan(whole);
  }
  return true;
}

}  // namespace

void Session::on_scsi_command(pdu::Pdu& pdu, Nanos arrived) {
  const pdu::Bhs& h = pdu.header;
  const bool immediate = h.immediate();
  auto refuse_pdu = [&](RejectReason reason) {
    if (!immediate) window_.release();
    reject(h, reason);
  };
  if (parameters_.discovery) return refuse_pdu(RejectReason::kProtocolError);
  if (h.itt() == pdu::kReservedTag) return refuse_pdu(RejectReason::kInvalidPduField);
  if (table_.find(h.itt())) return refuse_pdu(RejectReason::kTaskInProgress);
  if (immediate && immediate_tasks_ >= immediate_limit_) {
    return refuse_pdu(RejectReason::kImmediateCommandReject);
  }
  Task* task = pool_.take();
  if (!task) return refuse_pdu(RejectReason::kImmediateCommandReject);
  if (!accept_command(pdu, task)) {
    task->enter(Task::State::kFree);
    pool_.give_back(task);
    return refuse_pdu(RejectReason::kInvalidPduField);
  }
  task->command.arrived = arrived;
  if (immediate) ++immediate_tasks_;
  table_.insert(task);
  ++commands_;
  shard_.counters->commands.add();
  if (pdu.data_size != 0 || task->announces_data()) {
    if (!take_immediate_data(pdu, task)) return;
  }
  if (!held_.empty() || lacks_output_memory(*task)) return held_.push(task);
  start(task);
}

// Fills the task from the PDU; false when the PDU contradicts itself.
bool Session::accept_command(pdu::Pdu& pdu, Task* task) {
  const pdu::Bhs& h = pdu.header;
  task->receive(h);
  task->session = this;

  lun::Command& c = task->command;
  c.lun_field = h.lun();
  std::memcpy(c.cdb.data(), h.data() + 32, 16);
  c.long_cdb = {};
  Additional more;
  more.long_cdb = &task->long_cdb;
  more.bidirectional = task->expects == Task::Expects::kBoth;
  if (pdu.ahs_size != 0 && !parse_ahs(pdu.ahs_bytes(), c.cdb, forwarding(), &more)) return false;
  if (forwarding() && !more.forwarded) return false;
  if (!task->expects_data_out() && pdu.data_size != 0) return false;
  if (!task->long_cdb.empty()) c.long_cdb = task->long_cdb;
  // No supported command is bidirectional. A reserved opcode gets the right refusal.
  if (more.bidirectional) c.cdb[0] = 0xff;
  c.epoch = more.by_forwarder.epoch;
  c.fresh_until = 0;
  if (forwarding()) {
    c.fresh_until =
        mutation_disables(Guard::kToken) ? 0 : tokens_.fresh_until(more.by_forwarder.token);
  } else if (liveness_.answers_pings() && !mutation_disables(Guard::kAge)) {
    c.fresh_until = liveness_.confirmed_until() + limits::kDiscardSilence;
  }
  c.attribute = static_cast<lun::TaskAttribute>(h.flags() & pdu::kAttributeMask);
  c.tag = task->itt;
  c.expected_data_in = task->expects_data_in() ? task->expected_length : 0;
  c.expected_data_out = task->wanted;
  c.data_out_wanted = c.data_out_size = c.data_in_size = 0;
  c.sense_size = 0;
  c.status = scsi::Status::kGood;
  c.aborted = c.task_aborted_status = c.drops_nexus = c.stale = c.not_owner = false;
  c.needs_stable_data = parameters_.data_digest;
  c.context = task;
  c.complete = &Session::on_complete;
  return true;
}

// RFC 7143 §11.3.4, §13.13: immediate data counts as the start of the unsolicited data. An error
// ends the task as §11.4.7.2 says, after the announced data was discarded.
bool Session::take_immediate_data(pdu::Pdu& pdu, Task* task) {
  const uint32_t limit = std::min(parameters_.first_burst_length, task->expected_length);
  const bool may_follow = !parameters_.initial_r2t;
  if ((pdu.data_size != 0 && !parameters_.immediate_data) || pdu.data_size > limit ||
      (task->announces_data() && !may_follow)) {
    // RFC 7143 §11.3.1: F=1 is required when nothing unsolicited may follow.
    if (!may_follow) task->unsolicited_data = Task::Unsolicited::kComplete;
    refuse(task, 0x0c, 0x0c);
    return false;
  }
  task->unsolicited = pdu.data_size;
  append_data(pdu, task, false);
  return true;
}

void Session::refuse(Task* task, uint8_t asc, uint8_t ascq) {
  lun::Command& c = task->command;
  c.status = scsi::Status::kCheckCondition;
  c.sense_size = static_cast<uint8_t>(
      scsi::encode(scsi::Sense::make(scsi::SenseKey::kAbortedCommand, asc, ascq), false, c.sense));
  c.data_in_size = 0;
  complete(task);
}

void Session::start(Task* task) {
  lun::Command& c = task->command;
  if (c.fresh_until != 0 && shard_.now > c.fresh_until) [[unlikely]] {
    c.stale = true;
    return complete(task);
  }
  if (task->charged != 0) {
    lun::CommandContext* itl = nexus_->use(c.lun_field);
    if (itl && shard_.write_quota.full(*itl)) [[unlikely]]
      return refuse_full(task, *itl);
    if (itl) r2t_.begin(task, itl);
  }
  task->enter(Task::State::kExecuting);
  reads_running_ += c.expected_data_in;
  // Data for a command that needs none is discarded.
  const uint32_t announced = std::exchange(task->wanted, 0);
  if (!nexus_->begin(c)) return;  // it executes, or has ended: the task may be gone
  task->enter(Task::State::kNeedsData);
  task->wanted = std::min(c.data_out_wanted, announced);
  task->solicited = task->received;
  r2t_.continue_task(task);
}

// The unit completes nothing, or less than is written to it (SAM-5 §5.3.1: TASK SET FULL). Hosts
// repeat the command later.
void Session::refuse_full(Task* task, const lun::CommandContext& itl) {
  lun::Command& c = task->command;
  c.status = scsi::Status::kTaskSetFull;
  itl.unit().statistics().shard(shard_.context.reactor).fail(lun::Failure::kBusy);
  complete(task);
}

void Session::on_complete(lun::Command& command) {
  Task* task = static_cast<Task*>(command.context);
  Session* session = task->session;
  session->r2t_.release_for_unit(task);
  session->reads_running_ -= command.expected_data_in;
  session->complete(task);
}

void Session::complete(Task* task) {
  lun::Command& c = task->command;
  if (end_unanswered(task)) return;
  if (task->state() == Task::State::kFailing && !closing_) {
    task->enter(Task::State::kExecuting);
    c.aborted = false;
    return refuse(task, task->fail_asc, task->fail_ascq);
  }
  if (closing_ || task->aborting() || (c.aborted && !c.task_aborted_status)) return end_task(task);
  if (c.aborted) {
    // TAS=1: another nexus aborted it (SAM-5 §5.3.1). Announced data will be discarded.
    c.status = scsi::Status::kTaskAborted;
    c.sense_size = 0;
    c.data_in_size = 0;
    return respond(task);
  }
  if (task->announces_data()) {
    // The initiator still sends the announced data. Until then its tag is in use.
    return task->enter(Task::State::kAnswered);
  }
  respond(task);
}

// Ends a task for which no response would be true. If it returns true, the task may be gone.
bool Session::end_unanswered(Task* task) {
  const lun::Command& c = task->command;
  if (closing_ || task->aborting() || task->state() == Task::State::kFailing) return false;
  if (forwarding()) {
    uint8_t response = 0;
    if (c.drops_nexus) response = kResponseUnknown;
    if (c.not_owner) response = kResponseNotOwner;
    if (c.stale) response = kResponseStale;
    if (c.aborted && !c.task_aborted_status) response = kResponseAborted;
    if (response == 0) return false;
    respond_for_forwarder(task, response);
    return true;
  }
  if (!c.drops_nexus && !c.stale) return false;
  // DESIGN R3, R6: no response would be true. The host loses the path and repeats the command on
  // another one.
  const bool stale = c.stale;
  end_task(task);
  host_.drop(stale ? "a command became stale before it could be submitted"
                   : "the outcome of a command that must not be executed twice is unknown");
  return true;
}

}  // namespace sluice::iscsi
