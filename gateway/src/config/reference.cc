#include "config/reference.h"

#include <fmt/format.h>

#include "config/keys.h"

namespace sluice::config {
namespace {

// A cell can't hold a bar or a line break.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string default_text(const Key& key) {
  if (key.required) return "required";
  if (key.fallback.empty()) return "";
  if (key.fallback.front() == '(') {
    return std::string(key.fallback.substr(1, key.fallback.size() - 2));
  }
  return fmt::format("`{}`", key.fallback);
}

}  // namespace

std::string reference() {
  std::string out;
  for (const Schema& schema : schemas()) {
    out += fmt::format("### {}\n\n", schema.title);
    if (!schema.meaning.empty()) out += fmt::format("{}\n\n", schema.meaning);
    out += "| key | default | allowed | meaning |\n|---|---|---|---|\n";
    for (const Key& key : schema.keys) {
      out += fmt::format("| `{}` | {} | {} | {} |\n", key.name, cell(default_text(key)),
                         cell(allowed_text(key)), cell(key.meaning));
    }
    out += '\n';
  }
  return out;
}

}  // namespace sluice::config
