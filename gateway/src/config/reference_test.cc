#include "config/reference.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "config/keys.h"

namespace sluice::config {
namespace {

constexpr const char* kBegin = "<!-- keys: rendered from src/config/key_table.cc -->\n";
constexpr const char* kEnd = "<!-- end of keys -->";

std::string contents(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Reference, ThePageMatchesTheKeyTable) {
  const std::string path = SLUICE_GATEWAY_DIR "/CONFIGURATION.md";
  std::string page = contents(path);
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << path;
  ASSERT_NE(end, std::string::npos) << path;
  const size_t first = begin + std::string(kBegin).size();
  if (std::getenv("SLUICE_WRITE_REFERENCE") != nullptr) {
    page.replace(first, end - first, reference());
    std::ofstream(path) << page;
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), reference())
      << "run config_test with SLUICE_WRITE_REFERENCE=1";
}

TEST(Reference, EveryKeyHasAMeaningAndADefaultOrIsRequired) {
  for (const Schema& schema : schemas()) {
    for (const Key& key : schema.keys) {
      EXPECT_FALSE(key.meaning.empty()) << key.name;
      const bool section = key.type == KeyType::kSection;
      EXPECT_TRUE(section || key.required || !key.fallback.empty()) << key.name;
    }
  }
}

}  // namespace
}  // namespace sluice::config
