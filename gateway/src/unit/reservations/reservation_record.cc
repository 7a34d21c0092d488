// The text form of a unit's reservations; the parser is strict.
#include <isa-l/crc.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/hex.h"
#include "base/limits.h"
#include "unit/reservations/reservation_store.h"

namespace sluice::lun {
namespace {

constexpr std::string_view kMagic = "sluice-reservations 1";

uint32_t checksum(std::string_view text) {
  // ISA-L's prototype lacks a const; it only reads.
  std::string copy(text);
  return ~crc32_iscsi(reinterpret_cast<unsigned char*>(copy.data()), static_cast<int>(copy.size()),
                      ~0u);
}

uint64_t isid_value(const std::array<uint8_t, 6>& isid) { return load_be48(isid.data()); }

std::string format_ports(const NexusId& id) {
  return hex_number(isid_value(id.isid), 12) + ' ' + std::to_string(id.target_portal_group) + ' ' +
         std::to_string(id.relative_target_port);
}

std::string format_registration(const Registration& r) {
  if (!r.all_target_ports) {
    return "registration " + hex_number(r.key, 16) + ' ' + format_ports(r.nexus) + ' ' +
           r.nexus.initiator_name + '\n';
  }
  std::string except;
  for (uint16_t port : r.except_ports) except += (except.empty() ? "" : ",") + std::to_string(port);
  return "all-ports " + hex_number(r.key, 16) + ' ' + format_ports(r.nexus) + ' ' +
         (except.empty() ? "-" : except) + ' ' + r.nexus.initiator_name + '\n';
}

// Reads the fields of one line; after an error the object stays invalid.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_(line) {}

  std::string_view word() {
    const size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (out.empty()) bad_ = true;
    return out;
  }
  uint64_t number(uint64_t max) { return parse(word(), 10, 1, 20, max); }
  uint64_t hex_number(size_t digits) { return parse(word(), 16, digits, digits, UINT64_MAX); }
  NexusId ports() {
    NexusId id;
    store_be48(id.isid.data(), hex_number(12));
    id.target_portal_group = static_cast<uint16_t>(number(UINT16_MAX));
    id.relative_target_port = static_cast<uint16_t>(number(UINT16_MAX));
    return id;
  }
  std::string name() {
    const std::string_view out = word();
    if (out.size() > limits::kMaxIscsiName) bad_ = true;
    return std::string(out);
  }
  std::vector<uint16_t> port_list() {
    std::vector<uint16_t> out;
    std::string_view list = word();
    if (list == "-") return out;
    while (!list.empty() && !bad_) {
      const size_t end = std::min(list.find(','), list.size());
      out.push_back(static_cast<uint16_t>(parse(list.substr(0, end), 10, 1, 5, UINT16_MAX)));
      list.remove_prefix(std::min(end + 1, list.size()));
    }
    return out;
  }
  bool good() const { return !bad_ && rest_.empty(); }

 private:
  uint64_t parse(std::string_view text, int base, size_t least, size_t most, uint64_t max) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size() || text.size() < least ||
        text.size() > most || value > max) {
      bad_ = true;
      return 0;
    }
    return value;
  }

  std::string_view rest_;
  bool bad_ = false;
};

bool known_type(uint64_t code) {
  return code == 0 || code == 1 || code == 3 || (code >= 5 && code <= 8);
}

// Rejects a state from a file that no sequence of commands can produce.
bool consistent(const ReservationState& s) {
  if (s.registrations.size() > limits::kMaxRegistrations) return false;
  if (s.type == ReservationType::kNone) return !s.holder;
  if (scsi::is_all_registrants(s.type)) return !s.holder && !s.registrations.empty();
  return s.holder && s.find(*s.holder);
}

bool read_registration(std::string_view kind, Fields& fields, ReservationState* state) {
  Registration r;
  r.key = fields.hex_number(16);
  r.nexus = fields.ports();
  r.all_target_ports = kind == "all-ports";
  if (r.all_target_ports) r.except_ports = fields.port_list();
  r.nexus.initiator_name = fields.name();
  state->registrations.push_back(std::move(r));
  return fields.good() && state->registrations.back().key != 0;
}

bool read_line(std::string_view line, ReservationState* state) {
  Fields fields(line);
  const std::string_view kind = fields.word();
  if (kind == "generation") {
    state->generation = static_cast<uint32_t>(fields.number(UINT32_MAX));
  } else if (kind == "aptpl") {
    state->aptpl = fields.number(1) == 1;
  } else if (kind == "type") {
    const uint64_t code = fields.number(8);
    if (!known_type(code)) return false;
    state->type = static_cast<ReservationType>(code);
  } else if (kind == "holder") {
    if (state->holder) return false;
    state->holder = fields.ports();
    state->holder->initiator_name = fields.name();
  } else if (kind == "registration" || kind == "all-ports") {
    return read_registration(kind, fields, state);
  } else {
    return false;
  }
  return fields.good();
}

Error broken(const std::string& name, const std::string& what) {
  return Error{"the reservations in " + name + " can't be trusted (" + what +
               "); restore the file, or move it away to start with no reservations, after making "
               "sure that no other host relies on them"};
}

}  // namespace

std::string format_reservations(const std::string& unit_uuid, const ReservationState& state) {
  std::string text(kMagic);
  text += "\nunit " + unit_uuid + '\n';
  text += "generation " + std::to_string(state.generation) + '\n';
  text += std::string("aptpl ") + (state.aptpl ? '1' : '0') + '\n';
  text += "type " + std::to_string(static_cast<int>(state.type)) + '\n';
  if (state.holder) {
    text += "holder " + format_ports(*state.holder) + ' ' + state.holder->initiator_name + '\n';
  }
  for (const Registration& r : state.registrations) text += format_registration(r);
  return text + "crc32c " + hex_number(checksum(text), 8) + '\n';
}

Result<ReservationState> parse_reservations(std::string_view text, const std::string& unit_uuid,
                                            const std::string& name) {
  constexpr size_t kSealBytes = 16;  // "crc32c 01234567\n"
  if (text.size() < kSealBytes) return broken(name, "it is cut short");
  const std::string_view body = text.substr(0, text.size() - kSealBytes);
  const std::string seal = "crc32c " + hex_number(checksum(body), 8) + '\n';
  if (text.substr(body.size()) != seal) return broken(name, "its checksum is wrong");
  ReservationState state;
  size_t number = 0;
  for (std::string_view rest = body; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return broken(name, "it is cut short");
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (number == 0) {
      if (line != kMagic) return broken(name, "it is of another format or version");
    } else if (number == 1) {
      if (line != "unit " + unit_uuid) return broken(name, "it belongs to another volume");
    } else if (!read_line(line, &state)) {
      return broken(name, "line " + std::to_string(number + 1) + " makes no sense");
    }
  }
  if (number < 2 || !consistent(state)) return broken(name, "it contradicts itself");
  return state;
}

}  // namespace sluice::lun
