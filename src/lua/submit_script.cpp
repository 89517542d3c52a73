// SPDX-License-Identifier: GPL-2.0-or-later
#include "lua/submit_script.h"

#include <fmt/format.h>

#include <lua.hpp>

#include <string_view>
#include <utility>

namespace gpuq::lua {
namespace {

constexpr std::string_view k_slurm =
#include "lua/slurm.lua.inc"
    ;

struct Close {
    void operator()(lua_State* state) const { lua_close(state); }
};
using State = std::unique_ptr<lua_State, Close>;

std::string take_error(lua_State* state)
{
    const char* text = lua_tostring(state, -1);
    std::string error = text != nullptr ? text : "no reason given";
    lua_settop(state, 0);
    return error;
}

Result<void> load(lua_State* state, std::string_view text, const char* name)
{
    if (luaL_loadbuffer(state, text.data(), text.size(), name) != 0 ||
        lua_pcall(state, 0, 0, 0) != 0) {
        return fail(Error::Kind::usage, take_error(state));
    }
    return {};
}

void push(lua_State* state, std::string_view text)
{
    lua_pushlstring(state, text.data(), text.size());
}

void push(lua_State* state, const ScriptFields& fields)
{
    lua_newtable(state);
    for (const auto& [name, value] : fields) {
        push(state, name);
        if (const auto* text = std::get_if<std::string>(&value)) {
            push(state, *text);
        } else {
            lua_pushnumber(state, std::get<std::uint32_t>(value));
        }
        lua_rawset(state, -3);
    }
}

void push(lua_State* state, const std::vector<std::string>& messages)
{
    lua_newtable(state);
    for (std::size_t i = 0; i < messages.size(); ++i) {
        push(state, messages[i]);
        lua_rawseti(state, -2, static_cast<int>(i) + 1);
    }
}

std::string text_at(lua_State* state, int index)
{
    std::size_t size = 0;
    const char* text = lua_tolstring(state, index, &size);
    return text != nullptr ? std::string(text, size) : std::string();
}

ScriptFields fields_at(lua_State* state, int index)
{
    ScriptFields fields;
    lua_pushnil(state);
    while (lua_next(state, index) != 0) {
        if (lua_type(state, -1) == LUA_TNUMBER) {
            fields[text_at(state, -2)] = static_cast<std::uint32_t>(lua_tonumber(state, -1));
        } else {
            fields[text_at(state, -2)] = text_at(state, -1);
        }
        lua_pop(state, 1);
    }
    return fields;
}

std::vector<std::string> strings_at(lua_State* state, int index)
{
    std::vector<std::string> messages;
    for (int i = 1;; ++i) {
        lua_rawgeti(state, index, i);
        if (lua_isnil(state, -1)) {
            lua_pop(state, 1);
            return messages;
        }
        messages.push_back(text_at(state, -1));
        lua_pop(state, 1);
    }
}

class LuaScript : public SubmitScript {
public:
    explicit LuaScript(State state)
        : m_state(std::move(state))
    {
    }

    Result<ScriptAnswer> submit(const ScriptFields& job,
                                const std::vector<std::string>& reservations) override
    {
        lua_getglobal(m_state.get(), "gpuq_submit");
        push(m_state.get(), job);
        lua_pushvalue(m_state.get(), -1);
        lua_insert(m_state.get(), 1); // a copy of the job, read back after the call
        push(m_state.get(), reservations);
        return answer(2);
    }

    Result<ScriptAnswer> modify(const ScriptFields& job, const ScriptFields& change,
                                std::uint32_t uid) override
    {
        lua_getglobal(m_state.get(), "gpuq_modify");
        push(m_state.get(), job);
        push(m_state.get(), change);
        lua_pushvalue(m_state.get(), -1);
        lua_insert(m_state.get(), 1);
        lua_pushnumber(m_state.get(), uid);
        return answer(3);
    }

private:
    /// Calls the function on the stack; the table of fields to read back is below it, at the
    /// bottom.
    Result<ScriptAnswer> answer(int arguments)
    {
        lua_State* state = m_state.get();
        if (lua_pcall(state, arguments, 2, 0) != 0) {
            return fail(Error::Kind::internal, "job_submit.lua: " + take_error(state));
        }
        ScriptAnswer answer{static_cast<int>(lua_tonumber(state, 2)), fields_at(state, 1),
                            strings_at(state, 3)};
        lua_settop(state, 0);
        return answer;
    }

    State m_state;
};

} // namespace

Result<std::unique_ptr<SubmitScript>> load_submit_script(const std::string& text)
{
    State state(luaL_newstate());
    if (!state) {
        return fail(Error::Kind::internal, "no memory for Lua");
    }
    luaL_openlibs(state.get());
    TRY(load(state.get(), k_slurm, "=slurm"));
    TRY(load(state.get(), text, "=job_submit.lua"));
    for (const char* name : {"slurm_job_submit", "slurm_job_modify"}) {
        lua_getglobal(state.get(), name);
        const bool there = lua_isfunction(state.get(), -1);
        lua_settop(state.get(), 0);
        if (!there) {
            return fail(Error::Kind::usage, fmt::format("there is no function {}", name));
        }
    }
    return std::unique_ptr<SubmitScript>(std::make_unique<LuaScript>(std::move(state)));
}

} // namespace gpuq::lua
