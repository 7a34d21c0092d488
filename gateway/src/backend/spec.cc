#include "backend/spec.h"

#include <algorithm>
#include <array>
#include <span>

#include "backend/options.h"
#include "backend/size_text.h"

namespace sluice::backend {
namespace {

constexpr std::array<std::string_view, 4> kPlainKeys = {"size", "block-size", "write-cache",
                                                        "read-only"};
constexpr std::array<std::string_view, 6> kFileKeys = {"size",      "block-size", "write-cache",
                                                       "read-only", "io",         "create"};
constexpr std::array<std::string_view, 8> kImageKeys = {
    "size", "block-size", "write-cache", "read-only", "conf", "monitors", "user", "keyring"};

Result<bool> parse_switch(std::string_view value) {
  if (value == "on") return true;
  if (value == "off") return false;
  return Error{"'" + std::string(value) + "' is neither on nor off"};
}

Result<void> set_switch(bool& target, std::string_view value) {
  Result<bool> on = parse_switch(value);
  if (!on) return Error{on.error()};
  target = *on;
  return {};
}

Result<void> set_size(uint64_t& target, std::string_view value) {
  Result<uint64_t> size = parse_size(value);
  if (!size) return Error{size.error()};
  target = *size;
  return {};
}

// Empty where the key is none of these.
std::string* text_of(std::string_view key, Spec& spec) {
  if (key == "conf") return &spec.ceph.config_file;
  if (key == "monitors") return &spec.ceph.monitors;
  if (key == "user") return &spec.ceph.user;
  if (key == "keyring") return &spec.ceph.keyring_file;
  return nullptr;
}

Result<void> apply(const Option& option, Spec& spec) {
  auto [key, value] = option;
  if (key == "size") return set_size(spec.size, value);
  if (key == "write-cache") return set_switch(spec.write_cache, value);
  if (key == "read-only") return set_switch(spec.read_only, value);
  if (key == "create") return set_switch(spec.create, value);
  if (std::string* text = text_of(key, spec)) {
    *text = std::string(value);
    // The comma separates options here.
    if (key == "monitors") std::replace(text->begin(), text->end(), ';', ',');
    return {};
  }
  if (key == "block-size") {
    if (value != "512" && value != "4096") {
      return Error{"'" + std::string(value) + "' is not a logical block size; use 512 or 4096"};
    }
    spec.block_size = value == "512" ? 512 : 4096;
    return {};
  }
  // io, the only one left
  if (value != "direct" && value != "buffered") {
    return Error{"'" + std::string(value) + "' is neither buffered nor direct"};
  }
  spec.direct = value == "direct";
  return {};
}

std::span<const std::string_view> keys_of(const Spec& spec) {
  if (spec.kind == "file") return kFileKeys;
  if (spec.kind == "rbd") return kImageKeys;
  return kPlainKeys;
}

bool has_path(const Spec& spec) { return spec.kind == "rbd" || is_file_or_device(spec); }

Result<void> check_kind(const Spec& spec) {
  if (has_path(spec) || spec.kind == "null" || spec.kind == "memory") return {};
  return Error{"unknown kind '" + spec.kind + "'; valid kinds: null memory file block sg nvme rbd"};
}

// pool/image or pool/namespace/image; `@` would name a snapshot.
Result<void> check_image(const std::string& path) {
  const auto slashes = std::count(path.begin(), path.end(), '/');
  const bool parts = !path.empty() && path.front() != '/' && path.back() != '/' &&
                     path.find("//") == std::string::npos && path.find('@') == std::string::npos;
  if (parts && (slashes == 1 || slashes == 2)) return {};
  return Error{"'" + path + "' names no image; write rbd:pool/image or rbd:pool/namespace/image"};
}

}  // namespace

bool is_device(const Spec& spec) {
  return spec.kind == "block" || spec.kind == "sg" || spec.kind == "nvme";
}

bool is_file_or_device(const Spec& spec) { return spec.kind == "file" || is_device(spec); }

Result<Spec> parse_spec(std::string_view text) {
  const std::string context = "backend '" + std::string(text) + "': ";
  Spec spec;
  size_t colon = text.find(':');
  spec.kind = std::string(text.substr(0, colon));
  if (Result<void> kind = check_kind(spec); !kind) return Error{context + kind.error()};
  std::string_view rest = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  size_t comma = rest.find(',');
  std::string_view first = rest.substr(0, comma);
  rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  if (has_path(spec)) {
    spec.path = std::string(first);
  } else if (first.find('=') != std::string_view::npos) {
    // `null:size=1GiB` says the same as `null:1GiB`
    rest = text.substr(colon + 1);
  } else if (!first.empty()) {
    Result<void> size = set_size(spec.size, first);
    if (!size) return Error{context + size.error()};
  }
  const bool sized = spec.size != 0;
  const std::vector<Option> options = split_options(rest, ",");
  for (auto option = options.begin(); option != options.end(); ++option) {
    std::span<const std::string_view> keys = keys_of(spec);
    if (std::find(keys.begin(), keys.end(), option->key) == keys.end()) {
      return Error{context + unknown_key(option->key, keys)};
    }
    auto same_key = [&](const Option& other) { return other.key == option->key; };
    if ((sized && option->key == "size") || std::any_of(options.begin(), option, same_key)) {
      return Error{context + std::string(option->key) + " is given twice; keep the one you mean"};
    }
    Result<void> applied = apply(*option, spec);
    if (!applied) return Error{context + std::string(option->key) + ": " + applied.error()};
  }
  Result<void> valid = validate(spec);
  if (!valid) return Error{context + valid.error()};
  return spec;
}

Result<void> validate(const Spec& spec) {
  Result<void> kind = check_kind(spec);
  if (!kind) return kind;
  if (has_path(spec) && spec.path.empty()) {
    return Error{"no path; write " + spec.kind +
                 (spec.kind == "rbd" ? ":pool/image" : ":/path/to/it")};
  }
  if (spec.kind == "rbd") {
    Result<void> image = check_image(spec.path);
    if (!image) return image;
  }
  if ((spec.kind == "sg" || spec.kind == "nvme") && spec.size != 0) {
    return Error{"size can't be given: the device is exported whole; use block: for a part of it"};
  }
  if (!has_path(spec) && spec.size == 0) return Error{"no size; write " + spec.kind + ":1GiB"};
  if (spec.block_size != 512 && spec.block_size != 4096) {
    return Error{"logical block size " + std::to_string(spec.block_size) +
                 " is not supported; use 512 or 4096"};
  }
  if (spec.size % spec.block_size != 0) {
    return Error{"size " + format_size(spec.size) + " is not a multiple of the block size " +
                 std::to_string(spec.block_size)};
  }
  constexpr uint64_t kLargest = uint64_t{1} << 63;  // 8EiB
  if (spec.size > kLargest) return Error{"size is beyond 8EiB, the limit"};
  if (spec.size == kLargest && spec.kind != "null") {
    return Error{"size is 8EiB, which only null can have: the kernel's limit is a byte less"};
  }
  return {};
}

}  // namespace sluice::backend
