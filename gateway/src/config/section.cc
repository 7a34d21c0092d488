#include "config/section.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "backend/options.h"
#include "backend/size_text.h"
#include "base/limits.h"
#include "config/duration.h"

namespace sluice::config {
namespace {

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    out += c >= ' ' && c < 0x7f ? c : '?';
  }
  return out + (text.size() > kShown ? "...'" : "'");
}

bool parse_number(std::string_view text, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// A NUL or a line break in a name, path or secret is a mistake at best.
bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < ' ' || c == 0x7f; });
}

}  // namespace

void Faults::add(int line, std::string_view key, std::string_view message) {
  if (++count_ > limits::kMaxConfigErrors) return;
  std::string text = file_;
  if (line > 0) text += (text.empty() ? "line " : ":") + std::to_string(line);
  if (!text.empty()) text += ": ";
  if (!key.empty()) text.append(key).append(": ");
  messages_.push_back(text.append(message));
}

std::string Faults::text() const {
  std::string all;
  for (const std::string& message : messages_) {
    if (!all.empty()) all += '\n';
    all += message;
  }
  if (count_ > messages_.size()) {
    all += "\nand " + std::to_string(count_ - messages_.size()) + " more";
  }
  return all;
}

Section::Section(Faults& faults, std::string_view schema, std::string path, const YAML::Node& node)
    : faults_(&faults), schema_(schema), path_(std::move(path)), node_(node) {
  check_keys();
}

void Section::check_keys() const {
  if (!node_.IsDefined()) return;
  if (!node_.IsMap()) {
    faults_->add(line(), path_, "got something else, allowed a section of 'key: value' lines");
    return;
  }
  const std::span<const Key> known = keys_of(schema_);
  std::vector<std::string_view> names;
  for (const Key& key : known) names.push_back(key.name);
  std::set<std::string> seen;
  for (const auto& pair : node_) {
    const int at = line_of(pair.first);
    if (!pair.first.IsScalar()) {
      faults_->add(at, path_, "a key must be plain text");
      continue;
    }
    const std::string& name = pair.first.Scalar();
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      faults_->add(at, path_, backend::unknown_key(name.substr(0, 80), names));
    } else if (!seen.insert(name).second) {
      faults_->add(at, full(name), "given twice");
    }
  }
  for (const Key& key : known) {
    if (key.required && !seen.contains(std::string(key.name))) {
      faults_->add(line(), full(key.name), "is missing; allowed " + allowed_text(key));
    }
  }
}

int Section::line_of(const YAML::Node& node) { return node.IsDefined() ? node.Mark().line + 1 : 0; }

// The key's own line: a value may start on the next, or be nothing at all.
int Section::line(std::string_view key) const {
  if (node_.IsDefined() && node_.IsMap()) {
    for (const auto& pair : node_) {
      if (pair.first.IsScalar() && pair.first.Scalar() == key) return line_of(pair.first);
    }
  }
  return line();
}

std::string Section::full(std::string_view key) const {
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

YAML::Node Section::find(std::string_view key) const {
  if (node_.IsDefined() && node_.IsMap()) {
    for (const auto& pair : node_) {
      if (pair.first.IsScalar() && pair.first.Scalar() == key) return pair.second;
    }
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

void Section::fault(std::string_view key, std::string_view message) const {
  faults_->add(line(key), full(key), message);
}

void Section::out_of_bounds(std::string_view key, std::string_view got) const {
  fault(key, "got " + std::string(got) + ", allowed " + allowed_text(find_key(schema_, key)));
}

bool Section::scalar(std::string_view key, std::string* out) const {
  const YAML::Node node = find(key);
  if (!node.IsDefined()) return false;
  if (!node.IsScalar()) {
    out_of_bounds(key, node.IsNull() ? "nothing" : node.IsMap() ? "a section" : "a list");
    return false;
  }
  *out = node.Scalar();
  return true;
}

bool Section::sequence(std::string_view key, YAML::Node* out) const {
  const YAML::Node node = find(key);
  if (!node.IsDefined()) return false;
  if (!node.IsSequence()) {
    out_of_bounds(key, node.IsNull()  ? "nothing"
                       : node.IsMap() ? "a section"
                                      : quoted(node.Scalar()));
    return false;
  }
  out->reset(node);
  return true;
}

void Section::number(std::string_view key, uint64_t* out) const {
  std::string raw;
  if (!scalar(key, &raw)) return;
  const Key& bounds = find_key(schema_, key);
  uint64_t value = 0;
  if (!parse_number(raw, &value)) return out_of_bounds(key, quoted(raw));
  if (value < bounds.min || value > bounds.max) return out_of_bounds(key, std::to_string(value));
  *out = value;
}

void Section::size(std::string_view key, uint64_t* out) const {
  std::string raw;
  if (!scalar(key, &raw)) return;
  const Key& bounds = find_key(schema_, key);
  const Result<uint64_t> value = backend::parse_size(raw);
  if (!value) return fault(key, value.error() + "; allowed " + allowed_text(bounds));
  if (value.value() < bounds.min || value.value() > bounds.max) return out_of_bounds(key, raw);
  *out = value.value();
}

void Section::duration(std::string_view key, Nanos* out) const {
  std::string raw;
  if (!scalar(key, &raw)) return;
  const Key& bounds = find_key(schema_, key);
  const Result<Nanos> value = parse_duration(raw);
  if (!value) return fault(key, value.error() + "; allowed " + allowed_text(bounds));
  const auto nanos = static_cast<uint64_t>(value.value());
  if (nanos < bounds.min || nanos > bounds.max) return out_of_bounds(key, raw);
  *out = value.value();
}

void Section::on_off(std::string_view key, bool* out) const {
  std::string raw;
  if (!scalar(key, &raw)) return;
  const bool yes = raw == "on" || raw == "true" || raw == "yes";
  const bool no = raw == "off" || raw == "false" || raw == "no";
  if (!yes && !no) return out_of_bounds(key, quoted(raw));
  *out = yes;
}

void Section::choice(std::string_view key, std::string* out) const {
  std::string raw;
  if (!scalar(key, &raw)) return;
  std::string_view rest = find_key(schema_, key).choices;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, end) == raw) {
      *out = raw;
      return;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  out_of_bounds(key, quoted(raw));
}

void Section::text(std::string_view key, std::string* out) const {
  std::string raw;
  if (!scalar(key, &raw)) return;
  const Key& bounds = find_key(schema_, key);
  // The value isn't repeated: it may be a secret.
  if (has_control(raw)) return fault(key, "holds a control character");
  if (raw.size() < bounds.min || raw.size() > bounds.max) {
    return out_of_bounds(key, std::to_string(raw.size()) + " bytes");
  }
  *out = raw;
}

void Section::texts(std::string_view key, std::vector<std::string>* out) const {
  YAML::Node list;
  if (!sequence(key, &list)) return;
  const Key& bounds = find_key(schema_, key);
  if (list.size() < bounds.min || list.size() > bounds.max) {
    return out_of_bounds(key, std::to_string(list.size()));
  }
  for (const YAML::Node& item : list) {
    if (!item.IsScalar()) return fault(key, "every entry must be plain text");
    out->push_back(item.Scalar());
  }
}

void Section::numbers(std::string_view key, std::vector<unsigned>* out) const {
  YAML::Node list;
  if (!sequence(key, &list)) return;
  const Key& bounds = find_key(schema_, key);
  if (list.size() > limits::kMaxReactors) return out_of_bounds(key, "too many entries");
  for (const YAML::Node& item : list) {
    uint64_t value = 0;
    if (!item.IsScalar() || !parse_number(item.Scalar(), &value) || value > bounds.max) {
      return out_of_bounds(key, item.IsScalar() ? quoted(item.Scalar()) : "something else");
    }
    out->push_back(static_cast<unsigned>(value));
  }
}

Section Section::section(std::string_view key, std::string_view schema) const {
  return {*faults_, schema, full(key), find(key)};
}

std::vector<Section> Section::list(std::string_view key, std::string_view schema) const {
  std::vector<Section> sections;
  YAML::Node items;
  if (!sequence(key, &items)) return sections;
  const Key& bounds = find_key(schema_, key);
  if (items.size() < bounds.min || items.size() > bounds.max) {
    out_of_bounds(key, std::to_string(items.size()) + " entries");
    return sections;
  }
  for (size_t i = 0; i < items.size(); ++i) {
    sections.emplace_back(*faults_, schema, full(key) + "[" + std::to_string(i) + "]", items[i]);
  }
  return sections;
}

}  // namespace sluice::config
