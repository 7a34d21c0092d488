#include "control/local/two_copies.h"

#include "base/record_text.h"
#include "control/local/files.h"

namespace sluice::control {
Result<void> write_copies(int directory, const std::string& name, std::string_view sealed,
                          const std::string& shown) {
  if (sealed.size() > kCopyBytes) return Error{shown + ": its text is too long"};
  std::string blocks(kCopies * kCopyBytes, '\0');
  for (size_t i = 0; i < kCopies; ++i) blocks.replace(i * kCopyBytes, sealed.size(), sealed);
  return replace_file(directory, name, blocks, shown);
}

Result<std::optional<std::vector<std::string>>> read_copies(int directory, const std::string& name,
                                                            const std::string& shown) {
  const Result<std::optional<std::string>> blocks =
      read_small_file(directory, name, kCopies * kCopyBytes, shown);
  if (!blocks) return Error{blocks.error()};
  if (!blocks.value()) return std::optional<std::vector<std::string>>();
  std::vector<std::string> texts;
  const std::string_view all = *blocks.value();
  for (size_t at = 0; at < all.size(); at += kCopyBytes) {
    std::string_view copy = all.substr(at, kCopyBytes);
    copy = copy.substr(0, copy.find_last_not_of('\0') + 1);
    if (const auto body = unseal(copy)) texts.emplace_back(*body);
  }
  return std::optional(std::move(texts));
}

}  // namespace sluice::control
