#include "iscsi/scsi_command.h"

#include <cstring>
#include <vector>

#include "iscsi/forwarding_wire.h"

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

// READ (6), (10), (12), (16).
constexpr bool is_read(uint8_t opcode) {
  return opcode == 0x08 || opcode == 0x28 || opcode == 0xa8 || opcode == 0x88;
}

// WRITE (6), (10), (12), (16), WRITE AND VERIFY (10), (12), (16), WRITE ATOMIC (16): the commands
// that the statistics of a unit count as writes (lun::activity_of).
constexpr bool is_write(uint8_t opcode) {
  return opcode == 0x0a || opcode == 0x2a || opcode == 0xaa || opcode == 0x8a || opcode == 0x2e ||
         opcode == 0xae || opcode == 0x8e || opcode == 0x9c;
}

}  // namespace

void ScsiCommandIntake::on_scsi_command(pdu::Pdu& pdu, Nanos arrived) {
  const pdu::Bhs& h = pdu.header;
  const bool immediate = h.immediate();
  auto refuse_pdu = [&](RejectReason reason) {
    if (!immediate) window_.release();
    writer_.reject(h, reason);
  };
  if (session_.parameters.discovery) return refuse_pdu(RejectReason::kProtocolError);
  if (h.itt() == pdu::kReservedTag) return refuse_pdu(RejectReason::kInvalidPduField);
  if (tasks_.find(h.itt())) return refuse_pdu(RejectReason::kTaskInProgress);
  if (immediate && tasks_.immediate_full()) {
    return refuse_pdu(RejectReason::kImmediateCommandReject);
  }
  Task* task = tasks_.take();
  if (!task) return refuse_pdu(RejectReason::kImmediateCommandReject);
  if (!accept_command(pdu, task)) {
    tasks_.give_back(task);
    return refuse_pdu(RejectReason::kInvalidPduField);
  }
  task->command.arrived = arrived;
  tasks_.insert(task);
  ++commands_;
  reads_ += is_read(task->command.cdb[0]) ? 1 : 0;
  writes_ += is_write(task->command.cdb[0]) ? 1 : 0;
  session_.shard.counters->commands.add();
  if (pdu.data_size != 0 || task->announces_data()) {
    if (!data_out_.accept_immediate(pdu, task)) return;
  }
  execution_.admit(task);
}

// Fills the task from the PDU; false when the PDU contradicts itself.
bool ScsiCommandIntake::accept_command(pdu::Pdu& pdu, Task* task) {
  const pdu::Bhs& h = pdu.header;
  task->receive(h);
  execution_.attach(task);

  lun::Command& c = task->command;
  c.lun_field = h.lun();
  std::memcpy(c.cdb.data(), h.data() + 32, 16);
  c.long_cdb = {};
  Additional more;
  more.long_cdb = &task->long_cdb;
  more.bidirectional = task->expects == Task::Expects::kBoth;
  if (pdu.ahs_size != 0 && !parse_ahs(pdu.ahs_bytes(), c.cdb, session_.forwarding(), &more))
    return false;
  if (session_.forwarding() && !more.forwarded) return false;
  if (!task->expects_data_out() && pdu.data_size != 0) return false;
  if (!task->long_cdb.empty()) c.long_cdb = task->long_cdb;
  // No supported command is bidirectional. A reserved opcode gets the right refusal.
  if (more.bidirectional) c.cdb[0] = 0xff;
  c.epoch = more.by_forwarder.epoch;
  c.fresh_until = freshness_.of_command(more.by_forwarder.token);
  c.attribute = static_cast<lun::TaskAttribute>(h.flags() & pdu::kAttributeMask);
  c.tag = task->itt;
  c.expected_data_in = task->expects_data_in() ? task->expected_length : 0;
  c.expected_data_out = task->wanted;
  c.data_out_wanted = c.data_out_size = c.data_in_size = 0;
  c.sense_size = 0;
  c.status = scsi::Status::kGood;
  c.abort = lun::Abort::kNone;
  c.outcome = lun::Outcome::kAnswered;
  c.needs_stable_data = session_.parameters.data_digest;
  return true;
}

}  // namespace sluice::iscsi
