// SPDX-License-Identifier: Apache-2.0
#include "upload/endpoint.hpp"

#include "support/catch.hpp"
#include "support/support.hpp"

using namespace kb;
using namespace kb::upload;
using kb::test::TempDir;
using kb::test::write_text;

TEST_CASE("flag, variable and configuration name the endpoint in this order",
          "[upload][endpoint]") {
    const sys::EnvironmentMap set{{"HF_ENDPOINT", "https://hub.example/base/"}};
    const auto flag =
        find_endpoint({.flag = "http://127.0.0.1:8910", .config = "http://config"}, set);
    REQUIRE(flag.has_value());
    CHECK(flag->url.to_wire() == "http://127.0.0.1:8910/");
    CHECK(flag->source == "--endpoint");
    const auto variable = find_endpoint({.config = "http://config"}, set);
    REQUIRE(variable.has_value());
    CHECK(variable->url.below("/api").to_wire() == "https://hub.example/base/api");
    CHECK(variable->source == "HF_ENDPOINT");
    const auto config = find_endpoint({.config = "http://config"}, {{"HF_ENDPOINT", ""}});
    REQUIRE(config.has_value());
    CHECK(config->source == "config.toml");
}

TEST_CASE("no endpoint at all is an error that names the three ways", "[upload][endpoint]") {
    const auto none = find_endpoint({}, {});
    REQUIRE_FALSE(none.has_value());
    for (const char* way : {"--endpoint", "HF_ENDPOINT", "config.toml"}) {
        CHECK(none.error().to_text().contains(way));
    }
    const auto bad = find_endpoint({}, {{"HF_ENDPOINT", "hub.example"}});
    REQUIRE_FALSE(bad.has_value());
    CHECK(bad.error().to_text().contains("HF_ENDPOINT"));
}

TEST_CASE("the token comes from the first place that has one", "[upload][endpoint]") {
    const TempDir dir;
    write_text(dir / "path", " hf_path \n");
    write_text(dir / "home/token", "hf_home");
    write_text(dir / "xdg/huggingface/token", "hf_xdg");
    write_text(dir / "user/.cache/huggingface/token", "hf_user\n");
    write_text(dir / "blank", "\n");
    const auto at = [&dir](std::string_view name) {
        return (dir / name).string();
    };

    struct Case {
        const char* name;
        sys::EnvironmentMap environment;
        std::string token;
        std::string source;
    };

    const std::vector<Case> cases = {
        {"nothing", {}, "", ""},
        {"HF_TOKEN first",
         {{"HF_TOKEN", "\thf_env\n"},
          {"HUGGING_FACE_HUB_TOKEN", "hf_old"},
          {"HF_TOKEN_PATH", at("path")}},
         "hf_env",
         "HF_TOKEN"},
        {"old name", {{"HUGGING_FACE_HUB_TOKEN", "hf_old"}}, "hf_old", "HUGGING_FACE_HUB_TOKEN"},
        {"blank variable", {{"HF_TOKEN", "  "}, {"HF_TOKEN_PATH", at("path")}}, "hf_path", ""},
        {"file by path", {{"HF_TOKEN_PATH", at("path")}, {"HF_HOME", at("home")}}, "hf_path", ""},
        {"HF_HOME", {{"HF_HOME", at("home")}, {"HOME", at("user")}}, "hf_home", ""},
        {"XDG", {{"XDG_CACHE_HOME", at("xdg")}, {"HOME", at("user")}}, "hf_xdg", ""},
        {"HOME", {{"HOME", at("user")}}, "hf_user", ""},
        {"missing file", {{"HF_TOKEN_PATH", at("none")}}, "", ""},
        {"blank file", {{"HF_TOKEN_PATH", at("blank")}}, "", ""},
        {"switched off", {{"HF_TOKEN", "hf_env"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}, "", ""},
    };
    for (const Case& c : cases) {
        INFO(c.name);
        const auto found = find_token(c.environment, sys::real_file_system());
        REQUIRE(found.has_value());
        CHECK((*found ? (*found)->secret.reveal() : "") == c.token);
        if (!c.source.empty()) {
            CHECK((*found)->source == c.source);
        }
    }
}

TEST_CASE("a token file that cannot be read is an error, not an anonymous upload",
          "[upload][endpoint]") {
    const TempDir dir;
    write_text(dir / "token/inside", "a directory in its place");
    const auto found =
        find_token({{"HF_TOKEN_PATH", (dir / "token").string()}}, sys::real_file_system());
    REQUIRE_FALSE(found.has_value());
    CHECK(found.error().to_text().contains("reading the token file"));
}

TEST_CASE("a token in the clear to another machine is warned about", "[upload][endpoint]") {
    const auto warning = [](const char* url) {
        return cleartext_warning(http::Url::parse(url).value()).has_value();
    };
    CHECK(warning("http://hub.example"));
    CHECK_FALSE(warning("https://hub.example"));
    CHECK_FALSE(warning("http://127.0.0.1:8910"));
    CHECK_FALSE(warning("http://localhost"));
    CHECK_FALSE(warning("http://[::1]:1"));
    CHECK(warning("http://localhost.example"));
}
