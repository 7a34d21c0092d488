#include "forward/link.h"

#include <algorithm>

#include "base/log.h"
#include "commands/handler.h"
#include "iscsi/login/login.h"
#include "nexus/exports.h"

namespace sluice::forward {
namespace {

using pdu::Opcode;
using scsi::Sense;
using scsi::SenseKey;

// Tags of commands are an index and a count; those of functions have the highest bit.
constexpr uint32_t kIndexBits = 12;
static_assert(limits::kMaxLinkCommands <= 1u << kIndexBits);
constexpr uint32_t kCountMask = 0x7ffff;

// COMPARE AND WRITE, PERSISTENT RESERVE OUT, RESERVE and RELEASE of 6 and 10 bytes: if they may
// have been executed, they must not be reported as not executed (DESIGN R3, R6).
bool runs_once(uint8_t opcode) {
  switch (opcode) {
    case 0x89:
    case 0x5f:
    case 0x16:
    case 0x17:
    case 0x56:
    case 0x57:
      return true;
    default:
      return false;
  }
}

// UNMAP and third-party copies hold one range after another: one whose token was good may begin
// another step later.
bool works_in_steps(uint8_t opcode) { return opcode == 0x42 || opcode == 0x83; }

// The owner finds a session dead that is silent for so long, or its reactor stands still, and will
// close its sockets unread.
constexpr Nanos kOwnerNotices = limits::kDiscardSilence + limits::kStallLimit + 2 * limits::kTick;
constexpr uint16_t kWrongKey = static_cast<uint16_t>(iscsi::LoginStatus::kAuthenticationFailure);
constexpr Nanos kTokenOver = limits::kTokenLife + limits::kTick;

}  // namespace

InitiatorLogin::Setup login_setup(const Surroundings& around, const Peer& owner, size_t key) {
  const iscsi::ForwardingAccess::Identity self = around.access->identity();
  InitiatorLogin::Setup setup;
  setup.origin.gateway = self.number;
  setup.origin.incarnation = self.incarnation;
  setup.origin.owner = owner.number;
  setup.origin.owner_incarnation = owner.incarnation;
  std::vector<iscsi::ChapPair> keys =
      around.access->credentials_for(owner.number, owner.incarnation);
  if (!keys.empty()) setup.key = keys[std::min(key, keys.size() - 1)];
  for (iscsi::ChapPair& one : keys) iscsi::wipe(&one);
  setup.offer = around.offer;
  setup.random = around.random;
  return setup;
}

bool next_key(const Surroundings& around, const Peer& owner, uint16_t status, size_t* key) {
  std::vector<iscsi::ChapPair> keys =
      around.access->credentials_for(owner.number, owner.incarnation);
  const bool another = status == kWrongKey && *key + 1 < keys.size();
  for (iscsi::ChapPair& one : keys) iscsi::wipe(&one);
  *key = another ? *key + 1 : 0;
  return another;
}

LinkToOwner::LinkToOwner(const Surroundings& around, Dialer& dialer,
                         const std::shared_ptr<lun::Nexus>& nexus, Peer owner, uint64_t incarnation)
    : around_(around),
      dialer_(dialer),
      context_(nexus->reactor_context()),
      id_(nexus->id()),
      target_(nexus->target().iqn()),
      read_only_(nexus->read_only()),
      host_since_(nexus->host_since()),
      owner_(std::move(owner)),
      incarnation_(incarnation) {}

LinkToOwner::~LinkToOwner() {
  if (stream_) stream_->close();
}

bool LinkToOwner::fenced() const {
  return around_.access->fenced(owner_.number, owner_.incarnation);
}

bool LinkToOwner::anything_lost() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const auto& e) { return e->command && e->stage == Entry::Stage::kLost; });
}

LinkToOwner::Entry* LinkToOwner::take_entry() {
  if (free_.empty()) {
    if (entries_.size() == limits::kMaxLinkCommands) return nullptr;
    entries_.push_back(std::make_unique<Entry>());
    entries_.back()->index = static_cast<uint32_t>(entries_.size() - 1);
    free_.push_back(entries_.back().get());
  }
  Entry* entry = free_.back();
  free_.pop_back();
  const uint32_t index = entry->index;
  *entry = Entry{};
  entry->index = index;
  return entry;
}

// The command is about to end, which may start the next in here.
void LinkToOwner::forget(Entry& entry) {
  if (entry.stage == Entry::Stage::kWaiting) std::erase(waiting_, &entry);
  if (entry.aborting) --aborting_;
  entry.command = nullptr;
  free_.push_back(&entry);
}

LinkToOwner::Entry* LinkToOwner::find(uint32_t tag) {
  const uint32_t index = tag & ((1u << kIndexBits) - 1);
  if (index >= entries_.size()) return nullptr;
  Entry* entry = entries_[index].get();
  const bool sent = entry->command && entry->stage == Entry::Stage::kSent;
  return sent && entry->tag == tag ? entry : nullptr;
}

LinkToOwner::Entry* LinkToOwner::find(const lun::Command& command) {
  for (const auto& entry : entries_) {
    if (entry->command == &command) return entry.get();
  }
  return nullptr;
}

void LinkToOwner::start(lun::Command& command, uint64_t epoch) {
  const auto alive = shared_from_this();
  Entry* entry = ended_ || closed_ ? nullptr : take_entry();
  if (!entry) {
    if (!ended_ && !closed_) return lun::finish_status(command, scsi::Status::kBusy);
    return lun::finish_sense(command, Sense::make(SenseKey::kNotReady, 0x04, 0x0a));
  }
  entry->command = &command;
  entry->epoch = epoch;
  entry->since = now();
  waiting_.push_back(entry);
  pump();
}

void LinkToOwner::dial() {
  if (stream_ || ended_ || now() < redial_at_) return;
  redial_at_ = now() + limits::kRedial;
  InitiatorLogin::Setup setup = login_setup(around_, owner_, key_);
  setup.initiator_name = id_.initiator_name;
  setup.isid = id_.isid;
  setup.target_name = target_;
  setup.origin.tpgt = id_.target_portal_group;
  setup.origin.relative_port = id_.relative_target_port;
  setup.origin.nexus = incarnation_;
  setup.origin.read_only = read_only_;
  setup.host_age = now() - host_since_;
  token_ = 0;
  leaving_ = logout_sent_ = false;
  stream_ = std::make_shared<Stream>(*this, std::move(setup), context_.now);
  dialer_.dial(owner_.address, stream_);
}

void LinkToOwner::pump() {
  if (!open()) return dial();
  if (token_ == 0) return;  // it comes right after the login
  pump_functions();
  while (open() && !waiting_.empty() && !leaving_ && stream_->window_open()) {
    if (!send_command(*waiting_.front())) continue;
    waiting_.pop_front();
  }
  if (stream_) stream_->flush();
}

// False: it ended instead.
bool LinkToOwner::send_command(Entry& entry) {
  lun::Command& c = *entry.command;
  const iscsi::Forwarded forwarded{token_, entry.epoch};
  // DESIGN R6: the token first, then the clock, and not that of the batch.
  if (c.fresh_until != 0 && (context_.clock ? context_.clock() : now()) > c.fresh_until) {
    c.stale = true;
    forget(entry);
    lun::finish_sense(c, Sense::make(SenseKey::kNotReady, 0x04, 0x0a));
    return false;
  }
  const ByteView cdb = c.full_cdb();
  const auto more = static_cast<uint32_t>(cdb.size() > 16 ? cdb.size() - 16 : 0);
  const uint32_t more_ahs = more == 0 ? 0 : pdu::padded(4 + more);
  const bool writes = c.data_out_size != 0;
  const bool reads = !writes && c.expected_data_in != 0;
  const iscsi::Parameters& p = stream_->parameters();
  pdu::Bhs& h = stream_->writer().start(Opcode::kScsiCommand, iscsi::kForwardedAhsSize + more_ahs);
  entry.stage = Entry::Stage::kSent;
  entry.since = now();
  entry.received = 0;
  next_tag_ = (next_tag_ + 1) & kCountMask;
  entry.tag = next_tag_ << kIndexBits | entry.index;
  stream_->number(h, entry.tag, false);
  entry.cmd_sn = h.cmd_sn();
  h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | (reads ? pdu::kFlagRead : 0) |
                                   (writes ? pdu::kFlagWrite : 0) |
                                   static_cast<unsigned>(c.attribute)));
  h.set_lun(c.lun_field);
  h.put32(20, writes ? c.data_out_size : reads ? c.expected_data_in : 0);
  std::memcpy(h.data() + 32, cdb.data(), std::min<size_t>(cdb.size(), 16));
  uint8_t* ahs = stream_->writer().ahs();
  iscsi::store_forwarded(forwarded, ahs);
  if (more != 0) {
    ahs += iscsi::kForwardedAhsSize;
    std::memset(ahs, 0, more_ahs);
    store_be16(ahs, static_cast<uint16_t>(1 + more));
    ahs[2] = 1;
    std::memcpy(ahs + 4, cdb.data() + 16, more);
  }
  uint32_t left =
      p.immediate_data
          ? std::min({c.data_out_size, p.first_burst_length, p.max_send_data_segment_length})
          : 0;
  for (const Slice& piece : c.data_out) {
    if (left == 0) break;
    const uint32_t n = std::min(left, piece.size);
    stream_->writer().data({piece.owner, piece.data, n});
    left -= n;
  }
  stream_->writer().finish();
  return true;
}

void LinkToOwner::on_open() {
  const auto alive = shared_from_this();
  key_ = 0;
  log::info("forwarding session opened",
            {{"owner", owner_.number}, {"initiator", id_.initiator_name}, {"target", target_}});
  // The login was answered by the very process, once the session before it was drained.
  settle_lost(true);
  if (closed_) return log_out();
  pump();
}

void LinkToOwner::on_ended(Ending why) {
  const auto alive = shared_from_this();
  const bool another_key =
      why == Ending::kLoginRefused && next_key(around_, owner_, stream_->login_status(), &key_);
  if (why == Ending::kLoginRefused && !another_key) {
    log::warning("a gateway refuses to be forwarded to",
                 {{"owner", owner_.number}, {"reason", stream_->reason()}});
  }
  lose_stream();
  if (another_key) redial_at_ = 0;
  if ((why == Ending::kLost || another_key) && !closed_ && (anything_lost() || !waiting_.empty()))
    dial();
}

// What was sent may still arrive, and may be running.
void LinkToOwner::lose_stream() {
  const std::shared_ptr<Stream> gone = std::exchange(stream_, nullptr);
  if (gone) gone->close();
  token_ = 0;
  for (const auto& entry : entries_) {
    if (!entry->command || entry->stage != Entry::Stage::kSent) continue;
    entry->stage = Entry::Stage::kLost;
    entry->abort_tag = 0;
    entry->since = now();
    entry->command->data_in.clear();
  }
  for (Function& f : functions_) {
    if (std::exchange(f.tag, 0) != 0) f.since = now();
  }
  functions_sent_ = 0;
  if (closed_ && !anything_lost()) finish_close();
}

bool LinkToOwner::settled(const Entry& entry) const {
  const bool steps = works_in_steps(entry.command->full_cdb()[0]);
  return now() - entry.since >= (steps ? kOwnerNotices : kTokenOver);
}

// `drained`: at the owner nothing is left of the sessions before this one.
void LinkToOwner::settle_lost(bool drained) {
  const bool all = drained || fenced();
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.stage != Entry::Stage::kLost) continue;
    if (all || settled(entry)) end_lost(entry);
  }
  if (!closed_ || open() || anything_lost()) return;
  if (stream_) return lose_stream();  // it was to prove what time has proven
  finish_close();
}

void LinkToOwner::end_lost(Entry& entry) {
  lun::Command& c = *entry.command;
  if (entry.aborting) return end_aborted(entry);
  if (!runs_once(c.full_cdb()[0])) return end_unavailable(entry);
  forget(entry);
  c.drops_nexus = true;
  lun::finish_good(c);
}

void LinkToOwner::end_unavailable(Entry& entry) {
  lun::Command& c = *entry.command;
  forget(entry);
  // LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION
  lun::finish_sense(c, Sense::make(SenseKey::kNotReady, 0x04, 0x0a));
}

// What waits for a session that doesn't come.
void LinkToOwner::give_up_waiting(Nanos older_than) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.stage != Entry::Stage::kWaiting) continue;
    if (now() - entry.since >= older_than) end_unavailable(entry);
  }
}

void LinkToOwner::tick() {
  const auto alive = shared_from_this();
  settle_lost(false);
  // The owner answers them no more, and their commands have ended.
  if (ended_ && now() - ended_at_ >= kOwnerNotices) end_functions();
  if (closed_) {
    if (!stream_ && anything_lost()) dial();
    return;
  }
  if (!open()) {
    give_up_waiting(limits::kHoldCommands);
    if (!ended_) give_up_resets(limits::kHoldCommands);
  }
  const bool wanted = !waiting_.empty() || !functions_.empty() || anything_lost();
  if (open() || wanted) pump();
}

void LinkToOwner::check_owner() {
  const auto alive = shared_from_this();
  const std::optional<Peer> known = around_.peers->find(owner_.number);
  const bool same = known && known->incarnation == owner_.incarnation &&
                    known->address == owner_.address && !known->fenced;
  if (same && !fenced()) return;
  if (!std::exchange(ended_, true)) ended_at_ = now();
  lose_stream();
  settle_lost(false);
  give_up_waiting(0);
  if (fenced()) end_functions();
}

}  // namespace sluice::forward
