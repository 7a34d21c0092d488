#include "simulation/initiator.h"

#include <algorithm>
#include <cstring>

#include "pdu/digest.h"

namespace sluice::simulation {
namespace {

using pdu::Opcode;

void append(std::vector<uint8_t>* out, ByteView bytes) {
  out->insert(out->end(), bytes.begin(), bytes.end());
}

void append_digest(std::vector<uint8_t>* out, size_t from) {
  pdu::Digest d;
  d.update(out->data() + from, static_cast<uint32_t>(out->size() - from));
  uint8_t wire[4];
  d.store(wire);
  append(out, wire);
}

}  // namespace

std::vector<uint8_t> Initiator::frame(pdu::Bhs header, ByteView data, ByteView ahs) const {
  header.bytes[4] = static_cast<uint8_t>(ahs.size() / 4);
  header.set_data_length(static_cast<uint32_t>(data.size()));
  std::vector<uint8_t> out(header.bytes.begin(), header.bytes.end());
  append(&out, ahs);
  if (header_digest_) append_digest(&out, 0);
  const size_t data_at = out.size();
  append(&out, data);
  while (out.size() % 4 != 0) out.push_back(0);
  if (data_digest_ && !data.empty()) append_digest(&out, data_at);
  return out;
}

void Initiator::send(pdu::Bhs header, ByteView data, ByteView ahs) {
  connection_.send(frame(header, data, ahs));
}

std::vector<Answer> Initiator::answers() {
  append(&unread_, connection_.take());
  std::vector<Answer> out;
  size_t at = 0;
  while (unread_.size() - at >= pdu::kBhsSize) {
    Answer a;
    std::memcpy(a.header.data(), unread_.data() + at, pdu::kBhsSize);
    const uint32_t n = a.header.data_length();
    const size_t data_at = at + pdu::kBhsSize + a.header.ahs_length() + (header_digest_ ? 4 : 0);
    const size_t end = data_at + pdu::padded(n) + (data_digest_ && n ? 4 : 0);
    if (end > unread_.size()) break;
    a.data.assign(unread_.begin() + static_cast<ptrdiff_t>(data_at),
                  unread_.begin() + static_cast<ptrdiff_t>(data_at + n));
    const Opcode op = a.header.opcode();
    const bool carries_status = op != Opcode::kR2t &&
                                !(op == Opcode::kDataIn && !(a.header.flags() & 1)) &&
                                !(op == Opcode::kNopIn && a.header.itt() == pdu::kReservedTag);
    if (carries_status) exp_stat_sn = a.header.u32(24) + 1;
    out.push_back(std::move(a));
    at = end;
  }
  unread_.erase(unread_.begin(), unread_.begin() + static_cast<ptrdiff_t>(at));
  return out;
}

std::optional<Answer> Initiator::answer() {
  std::vector<Answer> all = answers();
  if (all.size() != 1) return std::nullopt;
  return std::move(all.front());
}

std::optional<Answer> Initiator::login(const std::vector<std::string>& keys,
                                       const std::string& target, uint16_t with_tsih) {
  std::string text;
  const auto add = [&](const std::string& pair) {
    text += pair;
    text.push_back('\0');
  };
  add("InitiatorName=" + name);
  if (target.empty()) {
    add("SessionType=Discovery");
  } else {
    add("TargetName=" + target);
    add("SessionType=Normal");
  }
  for (const std::string& key : keys) add(key);
  pdu::Bhs h;
  h.set_opcode(Opcode::kLoginRequest);
  h.put8(0, h.u8(0) | 0x40);
  h.set_flags(pdu::kFlagTransit | 1 << 2 | 3);  // operational -> full feature
  std::memcpy(h.data() + 8, isid.data(), isid.size());
  h.put16(14, with_tsih);
  h.set_itt(next_itt++);
  h.put16(20, cid);
  h.put32(24, cmd_sn);
  h.put32(28, exp_stat_sn);
  send(h, as_bytes(text));
  std::optional<Answer> a = answer();
  if (a && a->header.u16(36) == 0) tsih = a->header.u16(14);
  return a;
}

pdu::Bhs Initiator::request(Opcode opcode, bool immediate) {
  pdu::Bhs h;
  h.set_opcode(opcode);
  if (immediate) h.put8(0, h.u8(0) | 0x40);
  h.set_flags(pdu::kFlagFinal);
  h.set_itt(next_itt++);
  h.put32(24, immediate ? cmd_sn : cmd_sn++);
  h.put32(28, exp_stat_sn);
  return h;
}

pdu::Bhs Initiator::command(ByteView cdb, uint8_t flags, uint32_t expected_length, uint64_t lun) {
  pdu::Bhs h = request(Opcode::kScsiCommand, false);
  h.set_flags(flags);
  h.set_lun(lun << 48);
  h.put32(20, expected_length);
  std::memcpy(h.data() + 32, cdb.data(), std::min<size_t>(cdb.size(), 16));
  return h;
}

pdu::Bhs Initiator::data_out(uint32_t itt, uint32_t ttt, uint32_t data_sn, uint32_t offset,
                             bool final) const {
  pdu::Bhs h;
  h.set_opcode(Opcode::kDataOut);
  h.set_flags(final ? pdu::kFlagFinal : uint8_t{0});
  h.set_itt(itt);
  h.put32(20, ttt);
  h.put32(28, exp_stat_sn);
  h.put32(36, data_sn);
  h.put32(40, offset);
  return h;
}

void Initiator::absorb(const Answer& a, Outcome* o, uint32_t itt, ByteView out) {
  const pdu::Bhs& h = a.header;
  const auto finish = [&](uint8_t status) {
    o->answered = true;
    o->status = status;
    if (h.flags() & pdu::kFlagOverflow) o->overflow = h.u32(44);
    if (h.flags() & pdu::kFlagUnderflow) o->underflow = h.u32(44);
  };
  switch (h.opcode()) {
    case Opcode::kReject:
      o->rejected = true;
      return;
    case Opcode::kR2t: {
      const uint32_t offset = h.u32(40);
      const uint32_t length = h.u32(44);
      if (h.itt() != itt || offset + length > out.size()) return;
      pdu::Bhs data = data_out(itt, h.target_transfer_tag(), 0, offset, true);
      data.set_lun(h.lun());
      send(data, out.subspan(offset, length));
      return;
    }
    case Opcode::kDataIn:
      if (h.itt() != itt) return;
      o->data.resize(std::max<size_t>(o->data.size(), h.u32(40) + a.data.size()));
      std::memcpy(o->data.data() + h.u32(40), a.data.data(), a.data.size());
      if (h.flags() & pdu::kFlagStatus) finish(h.u8(3));
      return;
    case Opcode::kScsiResponse:
      if (h.itt() != itt) return;
      finish(h.u8(3));
      if (a.data.size() >= 16) {
        const uint8_t* sense = a.data.data() + 2;
        const bool descriptor = (sense[0] & 0x7f) >= 0x72;
        o->sense_key = sense[descriptor ? 1 : 2] & 0xf;
        o->asc = sense[descriptor ? 2 : 12];
        o->ascq = sense[descriptor ? 3 : 13];
      }
      return;
    default:
      return;
  }
}

Initiator::Outcome Initiator::execute(ByteView cdb, uint32_t data_in, ByteView out, uint64_t lun) {
  Outcome outcome;
  const bool writes = !out.empty();
  const auto flags = static_cast<uint8_t>(pdu::kFlagFinal | 1 | (writes ? pdu::kFlagWrite : 0) |
                                          (!writes && data_in ? pdu::kFlagRead : 0));
  const pdu::Bhs h = command(cdb, flags, writes ? static_cast<uint32_t>(out.size()) : data_in, lun);
  send(h);
  // Each round may bring R2Ts whose answers bring more; a stuck command brings nothing and ends.
  for (std::vector<Answer> got = answers(); !got.empty(); got = answers()) {
    for (const Answer& a : got) absorb(a, &outcome, h.itt(), out);
  }
  return outcome;
}

void Initiator::clear_attention(uint64_t lun) {
  while (execute(kTestUnitReady, 0, {}, lun).sense_key == 6) {
  }
}

std::array<uint8_t, 16> read16(uint64_t lba, uint32_t blocks) {
  std::array<uint8_t, 16> cdb{0x88};
  store_be64(&cdb[2], lba);
  store_be32(&cdb[10], blocks);
  return cdb;
}

std::array<uint8_t, 16> write16(uint64_t lba, uint32_t blocks) {
  std::array<uint8_t, 16> cdb{0x8a};
  store_be64(&cdb[2], lba);
  store_be32(&cdb[10], blocks);
  return cdb;
}

}  // namespace sluice::simulation
