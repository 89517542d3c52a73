// SPDX-License-Identifier: GPL-2.0-or-later
#include <lua.hpp>

int main()
{
    lua_State* state = luaL_newstate();
    luaL_openlibs(state);
    lua_close(state);
}
