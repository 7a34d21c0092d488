#include "forward/forwarded_commands.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "commands/handler.h"
#include "iscsi/forwarding_wire.h"
#include "nexus/pipeline.h"

namespace sluice::forward {
namespace {

using pdu::Opcode;
using scsi::Sense;
using scsi::SenseKey;

// Tags of commands are an index and a count. The highest bit is for the tags of functions
// (forwarded_functions.cc).
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

// UNMAP, WRITE SAME and third-party copies hold one range after another: one whose token was good
// may begin another step later.
bool works_in_steps(uint8_t opcode) {
  switch (opcode) {
    case 0x41:
    case 0x42:
    case 0x83:
    case 0x93:
      return true;
    default:
      return false;
  }
}

constexpr Nanos kTokenOver = limits::kTokenLife + limits::kTick;

}  // namespace

bool ForwardedCommands::any(Stage stage) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [stage](const auto& e) { return e->command && e->stage == stage; });
}

void ForwardedCommands::enter(Entry& entry, Stage to) {
  assert(entry.command && entry.stage < to);
  entry.stage = to;
  entry.since = now();
}

ForwardedCommands::Entry* ForwardedCommands::take_entry() {
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
void ForwardedCommands::forget(Entry& entry) {
  if (entry.stage == Stage::kWaiting) std::erase(waiting_, &entry);
  if (entry.abort == Abort::kRequested) --aborting_;
  entry.command = nullptr;
  free_.push_back(&entry);
}

ForwardedCommands::Entry* ForwardedCommands::find(uint32_t tag) {
  const uint32_t index = tag & ((1u << kIndexBits) - 1);
  if (index >= entries_.size()) return nullptr;
  Entry* entry = entries_[index].get();
  const bool sent = entry->command && entry->stage == Stage::kSent;
  return sent && entry->tag == tag ? entry : nullptr;
}

ForwardedCommands::Entry* ForwardedCommands::find(const lun::Command& command) {
  for (const auto& entry : entries_) {
    if (entry->command == &command) return entry.get();
  }
  return nullptr;
}

bool ForwardedCommands::add(lun::Command& command, uint64_t epoch) {
  Entry* entry = take_entry();
  if (!entry) return false;
  entry->command = &command;
  entry->epoch = epoch;
  entry->since = now();
  waiting_.push_back(entry);
  return true;
}

// DESIGN R6: the token was read first, now the clock, and not that of the batch.
bool ForwardedCommands::became_stale(Entry& entry) {
  lun::Command& c = *entry.command;
  if (c.fresh_until == 0) return false;
  if ((context_.clock ? context_.clock() : now()) <= c.fresh_until) return false;
  c.outcome = lun::Outcome::kStale;
  forget(entry);
  lun::finish_sense(c, Sense::make(SenseKey::kNotReady, 0x04, 0x0a));
  return true;
}

void ForwardedCommands::send_next(Stream& stream, uint64_t token) {
  Entry& entry = *waiting_.front();
  if (became_stale(entry)) return;
  waiting_.pop_front();
  const lun::Command& c = *entry.command;
  const iscsi::Forwarded forwarded{token, entry.epoch};
  const ByteView cdb = c.full_cdb();
  const auto more = static_cast<uint32_t>(cdb.size() > 16 ? cdb.size() - 16 : 0);
  const uint32_t more_ahs = more == 0 ? 0 : pdu::padded(4 + more);
  const bool writes = c.data_out_size != 0;
  const bool reads = !writes && c.expected_data_in != 0;
  const iscsi::Parameters& p = stream.parameters();
  pdu::Bhs& h = stream.writer().start(Opcode::kScsiCommand, iscsi::kForwardedAhsSize + more_ahs);
  enter(entry, Stage::kSent);
  sent_ = (sent_ + 1) & kCountMask;
  entry.tag = sent_ << kIndexBits | entry.index;
  stream.number(h, entry.tag, false);
  entry.cmd_sn = h.cmd_sn();
  h.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | (reads ? pdu::kFlagRead : 0) |
                                   (writes ? pdu::kFlagWrite : 0) |
                                   static_cast<unsigned>(c.attribute)));
  h.set_lun(c.lun_field);
  h.put32(20, writes ? c.data_out_size : reads ? c.expected_data_in : 0);
  std::memcpy(h.data() + 32, cdb.data(), std::min<size_t>(cdb.size(), 16));
  uint8_t* ahs = stream.writer().ahs();
  iscsi::store_forwarded(forwarded, ahs);
  if (more != 0) {
    ahs += iscsi::kForwardedAhsSize;
    std::memset(ahs, 0, more_ahs);
    store_be16(ahs, static_cast<uint16_t>(1 + more));
    ahs[2] = 1;
    std::memcpy(ahs + 4, cdb.data() + 16, more);
  }
  const uint32_t immediate =
      p.immediate_data
          ? std::min({c.data_out_size, p.first_burst_length, p.max_send_data_segment_length})
          : 0;
  write_data(c, immediate, stream);
  stream.writer().finish();
}

// The first `bytes` of the command's data.
void ForwardedCommands::write_data(const lun::Command& c, uint32_t bytes, Stream& stream) {
  for (const Slice& piece : c.data_out) {
    if (bytes == 0) break;
    const uint32_t n = std::min(bytes, piece.size);
    stream.writer().data({piece.owner, piece.data, n});
    bytes -= n;
  }
}

bool ForwardedCommands::abort(lun::Command& command) {
  Entry* entry = find(command);
  if (!entry || entry->abort == Abort::kRequested) return false;
  entry->abort = Abort::kRequested;
  ++aborting_;
  if (entry->stage != Stage::kWaiting) return true;
  end_aborted(*entry);
  return false;
}

const char* ForwardedCommands::on_data_in(pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  Entry* entry = find(h.itt());
  if (!entry) return "data for a command that is not there";
  lun::Command& c = *entry->command;
  if (h.u32(40) != entry->received ||
      pdu.data_size > c.expected_data_in - std::min(c.expected_data_in, entry->received)) {
    return "data out of place";
  }
  entry->received += pdu.data_size;
  // Each PDU may bring but a few bytes, and a host may read slowly what is kept here for it.
  for (Slice& piece : pdu.data) entry->packer.add(c.data_in, std::move(piece));
  pdu.data.clear();
  if (h.flags() & pdu::kFlagStatus) end_answered(*entry, h, {});
  return nullptr;
}

// The data goes out of the buffers it came in by.
const char* ForwardedCommands::on_r2t(const pdu::Pdu& pdu, Stream& stream) {
  const pdu::Bhs& h = pdu.header;
  Entry* entry = find(h.itt());
  if (!entry) return "asked for data of a command that is not there";
  lun::Command& c = *entry->command;
  uint32_t offset = h.u32(40);
  uint32_t left = h.u32(44);
  if (left == 0 || offset > c.data_out_size || left > c.data_out_size - offset) {
    return "asked for data that there is not";
  }
  const uint32_t segment = stream.parameters().max_send_data_segment_length;
  size_t slice = 0;
  uint32_t skip = offset;
  for (; skip >= c.data_out[slice].size; ++slice) skip -= c.data_out[slice].size;
  for (uint32_t data_sn = 0; left != 0; ++data_sn) {
    const uint32_t n = std::min(left, segment);
    pdu::Bhs& out = stream.writer().start(Opcode::kDataOut);
    // Data-Out has no CmdSN (RFC 7143 §11.7).
    stream.number(out, h.itt(), true);
    out.put8(0, static_cast<uint8_t>(Opcode::kDataOut));
    out.put32(24, 0);
    out.set_flags(n == left ? pdu::kFlagFinal : uint8_t{0});
    out.set_lun(h.lun());
    out.put32(20, h.target_transfer_tag());
    out.put32(36, data_sn);
    out.put32(40, offset);
    for (uint32_t rest = n; rest != 0;) {
      const Slice& from = c.data_out[slice];
      const uint32_t take = std::min(rest, from.size - skip);
      stream.writer().data({from.owner, from.data + skip, take});
      skip += take;
      if (skip == from.size) {
        ++slice;
        skip = 0;
      }
      rest -= take;
    }
    stream.writer().finish();
    offset += n;
    left -= n;
  }
  stream.flush();
  return nullptr;
}

const char* ForwardedCommands::on_response(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  Entry* entry = find(h.itt());
  if (!entry) return "an answer to a command that is not there";
  lun::Command& c = *entry->command;
  switch (h.u8(2)) {
    case 0x00:
      break;
    case iscsi::kResponseStale:
    case iscsi::kResponseNotOwner:
      forget(*entry);
      lun::return_forwarded(c);
      return nullptr;
    case iscsi::kResponseUnknown:
      forget(*entry);
      c.outcome = lun::Outcome::kUnknown;
      lun::finish_good(c);
      return nullptr;
    case iscsi::kResponseAborted:
      end_aborted(*entry);
      return nullptr;
    default:
      return "an answer with an unknown response code";
  }
  std::array<uint8_t, 2 + scsi::kMaxSenseBytes> segment{};
  size_t size = 0;
  for (const Slice& piece : pdu.data) {
    const size_t n = std::min<size_t>(piece.size, segment.size() - size);
    std::memcpy(segment.data() + size, piece.data, n);
    size += n;
  }
  const size_t sense = size < 2 ? 0 : std::min<size_t>(load_be16(segment.data()), size - 2);
  end_answered(*entry, h, ByteView(segment).subspan(2, sense));
  return nullptr;
}

// RFC 7143 §11.4.5: an overflow says how much more there would have been.
void ForwardedCommands::end_answered(Entry& entry, const pdu::Bhs& h, ByteView sense) {
  lun::Command& c = *entry.command;
  const bool reads = c.data_out_size == 0;
  const uint32_t residual = h.u32(44);
  const uint32_t more = reads && (h.flags() & pdu::kFlagOverflow) ? residual : 0;
  // The host gets the same residual for its own data.
  if (!reads && (h.flags() & pdu::kFlagUnderflow)) {
    c.data_out_wanted = c.data_out_size - std::min(residual, c.data_out_size);
  } else if (!reads && (h.flags() & pdu::kFlagOverflow)) {
    c.data_out_wanted = c.data_out_size + residual;
  }
  forget(entry);
  lun::finish_forwarded(c, static_cast<scsi::Status>(h.u8(3)), sense, std::move(c.data_in), more);
}

bool ForwardedCommands::on_abort_response(uint32_t tag, bool rejected) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.abort_tag != tag) continue;
    entry.abort_tag = 0;
    if (!rejected) end_aborted(entry);
    return true;
  }
  return false;
}

void ForwardedCommands::end_waiting_of(uint64_t lun_field) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    const bool here = entry.command && entry.command->lun_field == lun_field;
    if (here && entry.stage == Stage::kWaiting) end_aborted(entry);
  }
}

void ForwardedCommands::end_sent_before(uint64_t lun_field, uint32_t cmd_sn) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.stage != Stage::kSent) continue;
    const bool before = static_cast<int32_t>(entry.cmd_sn - cmd_sn) < 0;
    if (before && entry.command->lun_field == lun_field) end_aborted(entry);
  }
}

void ForwardedCommands::lose_sent() {
  for (const auto& entry : entries_) {
    if (!entry->command || entry->stage != Stage::kSent) continue;
    enter(*entry, Stage::kLost);
    entry->abort_tag = 0;
    entry->command->data_in.clear();
  }
}

bool ForwardedCommands::settled(const Entry& entry) const {
  const bool steps = works_in_steps(entry.command->full_cdb()[0]);
  return now() - entry.since >= (steps ? kOwnerNotices : kTokenOver);
}

void ForwardedCommands::settle_lost(bool all) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.stage != Stage::kLost) continue;
    if (all || settled(entry)) end_lost(entry);
  }
}

void ForwardedCommands::end_lost(Entry& entry) {
  lun::Command& c = *entry.command;
  if (entry.abort == Abort::kRequested) return end_aborted(entry);
  if (!runs_once(c.full_cdb()[0])) return end_unavailable(entry);
  forget(entry);
  c.outcome = lun::Outcome::kUnknown;
  lun::finish_good(c);
}

void ForwardedCommands::end_unavailable(Entry& entry) {
  lun::Command& c = *entry.command;
  forget(entry);
  // LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION
  lun::finish_sense(c, Sense::make(SenseKey::kNotReady, 0x04, 0x0a));
}

void ForwardedCommands::end_aborted(Entry& entry) {
  lun::Command& c = *entry.command;
  forget(entry);
  c.abort = lun::Abort::kSilent;
  lun::finish_good(c);
}

void ForwardedCommands::give_up_waiting(Nanos older_than) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = *entries_[i];
    if (!entry.command || entry.stage != Stage::kWaiting) continue;
    if (now() - entry.since >= older_than) end_unavailable(entry);
  }
}

}  // namespace sluice::forward
