if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end
----
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end
----
if redis.call("get",KEYS[1]) == ARGV[1] or not redis.call("get",KEYS[1]) then redis.call("set",KEYS[1],ARGV[1],"px",10000) return 1 end return nil
----
if redis.call("exists",KEYS[1]) == 0 then return redis.error_reply("ERROR") end return redis.status_reply("FINE")
----
local v = redis.call("get",KEYS[2]) if v == false then return -1 elseif v == ARGV[1] then return 1 end return 0
----
for i, key in ipairs(KEYS) do if redis.call("exists", key) == 1 then return 0 end end return #KEYS
----
local n = 0 for _, key in ipairs(KEYS) do if redis.call("get", key) == ARGV[1] then redis.call("del", key) n = n + 1 end end return n
----
local token = redis.call('get', KEYS[1])
if not token or token ~= ARGV[1] then
    return 0
end
local expiration = redis.call('pttl', KEYS[1])
if not expiration then expiration = 0 end
if expiration < 0 then
    return 0
end
return 1
----
return tostring(redis.call('del',KEYS[1])==1)
----
redis.call("set",KEYS[1],"v","EX",100) redis.call("set","other","w") return {redis.call("get",KEYS[1]), redis.call("get","other"), redis.call("ttl",KEYS[1])}
----
return redis.call("mget",KEYS[1],KEYS[2],"none")
----
return redis.call("set",KEYS[1],"x","NX")
----
return redis.call("set","new","x","NX")
----
return redis.call("set","new","x","NX").ok
----
return {redis.pcall("lpush",KEYS[1],"v")}
----
local e = redis.pcall("lpush",KEYS[1],"v") return e.err
----
local e = redis.pcall("lpush",KEYS[1],"v") local t={} for k,v in pairs(e) do t[#t+1]=k..tostring(v) end table.sort(t) return t
----
return redis.call("lpush",KEYS[1],"v")
----
return {pcall(redis.call,"lpush",KEYS[1],"v")}
----
local ok,e = pcall(redis.call,"lpush",KEYS[1],"v") error(e)
----
local e = redis.pcall("lpush",KEYS[1],"v") error(e)
----
local e = redis.pcall("lpush",KEYS[1],"v") return e
----
local ok,e = xpcall(function() return redis.call("lpush",KEYS[1],"v") end, function(e) return type(e)..e.err end) return {ok, e}
----
return redis.call()
----
return redis.pcall()
----
return redis.call({})
----
return redis.pcall({})
----
return redis.call("get", nil)
----
return redis.call("get", true)
----
return redis.call("get", function() end)
----
return redis.call("get")
----
return redis.call("nosuch")
----
return redis.pcall("nosuch")
----
return redis.call("set","a",1,2,3,4)
----
return redis.call("get", 12345678901234567890)
----
redis.call("set","n",0.1) return redis.call("get","n")
----
redis.call("set","n",2^53) return redis.call("get","n")
----
redis.call("set","n",1e15) return redis.call("get","n")
----
redis.call("set","n",1e16) return redis.call("get","n")
----
redis.call("set","n",1e17) return redis.call("get","n")
----
redis.call("set","n",-1e100) return redis.call("get","n")
----
redis.call("set","n",1/0) return redis.call("get","n")
----
redis.call("set","n",0/0) return redis.call("get","n")
----
redis.call("set","n",-0) return redis.call("get","n")
----
redis.call("set","n",3) return redis.call("get","n")
----
redis.call("set","n",1/3) return redis.call("get","n")
----
return {1,2,3.99,-3.99,nil,4}
----
return {1,true,false,{1},{ok="x"},{err="e"}}
----
return {2^63, -2^63, 2^64, 1e300, 1/0, -1/0, 0/0, 2^53, 2^53+1, -0}
----
return 3.99999
----
return -0.5
----
return "a\0b"
----
return ""
----
return nil
----
return
----
return 1, 2, 3
----
return true
----
return false
----
return {}
----
return {{},{{}}}
----
return {n=1}
----
return function() end
----
return cjson.null
----
return {cjson.null, 1}
----
return {nil}
----
return {nil, 1}
----
return {err="x y z"}
----
return {err="x"}
----
return {err=""}
----
return {err="-x y"}
----
return {err="a\r\nb\r\n"}
----
return {err="a\0b"}
----
return {err=1}
----
return {err=1, ok="x"}
----
return {ok="a\r\nb"}
----
return {ok="a\0b"}
----
return {ok=1, 7}
----
return {ok=""}
----
return {ok="x", err="y"}
----
return {double=3.5}
----
return {double=3.1}
----
return {double=1e300}
----
return {double="1"}
----
return {map={a=1,b=2}}
----
return {map={1,2,x={y="z"}}}
----
return {map={}}
----
return {{set={a=true}},{set={[3]=1}}}
----
return {big_number="123\n4"}
----
return {verbatim_string={format="txt",string="hi"}}
----
return {verbatim_string={format="txt"}}
----
return setmetatable({},{__index={ok="zz"}})
----
return setmetatable({},{__index=function(t,k) if k==1 then return "a" end end})
----
return redis.status_reply(1)
----
return redis.status_reply("x","y")
----
return redis.status_reply("x")
----
return redis.error_reply("x")
----
return redis.error_reply("x y")
----
return redis.error_reply("-MY x")
----
return redis.error_reply("MY x y")
----
return redis.error_reply("")
----
return redis.error_reply("-")
----
return redis.error_reply("a\0 b")
----
return redis.error_reply("my text\r\n")
----
return redis.error_reply({})
----
return redis.error_reply()
----
return redis.error_reply(1)
----
error(redis.error_reply("MY x y"))
----
return redis.sha1hex("")
----
return redis.sha1hex("abc")
----
return redis.sha1hex(1)
----
return redis.sha1hex({})
----
return redis.sha1hex()
----
return redis.sha1hex("a","b")
----
return redis.log(1)
----
return redis.log("x","y")
----
return redis.log(9,"y")
----
return redis.log(-1,"y")
----
return {redis.log(redis.LOG_DEBUG,"y")}
----
return {redis.LOG_DEBUG,redis.LOG_VERBOSE,redis.LOG_NOTICE,redis.LOG_WARNING,redis.REPL_NONE,redis.REPL_AOF,redis.REPL_SLAVE,redis.REPL_REPLICA,redis.REPL_ALL}
----
return redis.set_repl(9)
----
return redis.set_repl()
----
redis.set_repl(redis.REPL_ALL) return 1
----
return redis.set_repl("x")
----
return {redis.breakpoint(), redis.debug(1)}
----
return redis.replicate_commands()
----
return redis.setresp(4)
----
return redis.setresp()
----
redis.setresp(3) return redis.call("get","nokey")
----
redis.setresp(3) return redis.call("get","nokey") == nil
----
redis.setresp(3) return {true, false, 1}
----
redis.setresp(3) return false
----
redis.setresp(3) redis.setresp(2) return false
----
return error("x")
----
error("x y",0)
----
error("x",2)
----
error("x",3)
----
error()
----
error(nil)
----
error(5)
----
error(true)
----
error("a\nb")
----
error("a\0b")
----
error({err="My thing"})
----
error({err="My\r\nthing"})
----
error({err=5})
----
error({err="x",line=5,source="abc"})
----
local function f() error("x") end
local function g() return f() end
g()
----
local function f() error("x", 2) end
local function g() f() end
g()
----
local function f() error("x", 2) end
local function g() return f() end
g()
----
local function f()
  local x = nil
  return x.y
end
local ok = f()
return ok
----
table.sort({3,2,1},function(a,b) error("cmp") end)
----
table.foreach({1},error)
----
string.gsub("a","a",error)
----
return {pcall(error,"z")}
----
return {pcall(error,"z",2)}
----
return {pcall(error,nil)}
----
return {pcall(error,{err="z"})}
----
return {pcall(error,{"z"})}
----
return {pcall()}
----
return {pcall(1)}
----
return {pcall(string.rep)}
----
return {pcall(nil)}
----
return {pcall(function() return 1,2,3 end)}
----
return {pcall(function(...) return select("#",...) end, nil, nil)}
----
return {xpcall(function() error("x") end, function(m) return "<"..m..">" end)}
----
return {xpcall(function() error("x") end, function(m) error("again") end)}
----
return {xpcall(function() return 1,2 end, function(m) return m end)}
----
return {xpcall(function() local x = nil + 1 end, 5)}
----
xpcall()
----
return x
----
x=1
----
function f() end
----
local t={} t.x.y=1
----
local t={} return t.x.y.z
----
return KEYS.x.y
----
return (nil)()
----
local f f()
----
local t={} t.f()
----
local t={} t:f()
----
local t={a={}} t.a.b.c()
----
local s="x" s.y.z()
----
local s="x" s:nosuch()
----
nosuch()
----
redis.nosuch()
----
local up = nil
local function f() return up.x end
return f()
----
local up = nil
local function f() return up() end
return f()
----
local up = nil
local function f() up() end
return f()
----
local t = {} return t[1][2]
----
local t, k = {}, "k" return t[k].x
----
return (1)[1]
----
return ("x")[1].y
----
return 1+nil
----
local a return a+1
----
local a return 1+a
----
local t={} return t.x+1
----
return nosuch+1
----
return KEYS+1
----
return "a"+1
----
return "abc"*{}
----
local a, b = {}, {} return a..b
----
local a return "x"..a
----
local a return a.."x"
----
local a return "x".."y"..a.."z"
----
local t={} return "x"..t.y.."z"
----
return {}..1
----
return -{}
----
local t={} return -t
----
return #5
----
local t return #t
----
return #nil
----
return {} < {}
----
return 1 < "2"
----
return nil > 1
----
return 1 <= "x"
----
return {} <= 1
----
return "a" < "b"
----
return {"a"<"B", "a">"B", "" < "a", "a\0b" < "a\0c", "10"<"9"}
----
return 1 == "1"
----
return {1==1, "a"=="a", {}=={}, nil==false}
----
local t = {} t[nil]=1
----
local t = {} t[0/0]=1
----
local t = {} return t[nil]
----
rawset({}, nil, 1)
----
return next({},1)
----
return {next({})}
----
return {next({5})}
----
for i=1,"x" do end
----
for i="x",1 do end
----
for i=1,2,{} do end
----
local n=0 for i="1","3" do n=n+i end return n
----
local t={} for i=3,1,-1 do t[#t+1]=i end return t
----
local t={} for i=1,0 do t[#t+1]=i end return t
----
local n=0 for i=1,3,0.1 do n=n+1 end return n
----
for k in 5 do end
----
for k in nil do end
----
for k in pairs(nil) do end
----
for k in ipairs() do end
----
for k,v in next,5 do end
----
local t={} for k,v in pairs({10,20,30}) do t[#t+1]=k t[#t+1]=v end return t
----
local t={} for k,v in ipairs({10,20,nil,40}) do t[#t+1]=v end return t
----
local t={} for k,v in pairs({a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8}) do t[#t+1]=k end table.sort(t) return t
----
local t={} for i=1,20 do t["key"..i]=i end local r={} for k,v in pairs(t) do r[#r+1]=k end table.sort(r) return r
----
local t={} for i=1,20 do t[i*1.5]=i end local r={} for k,v in pairs(t) do r[#r+1]=tostring(k) end table.sort(r) return r
----
local t={} for i=-5,25,3 do t[i]=i end local r={} for k,v in pairs(t) do r[#r+1]=k end table.sort(r) return r
----
local t={[1]=1,[2]=2,[4]=4,x=1,y=2,[true]=3,[false]=4} local r={} for k,v in pairs(t) do r[#r+1]=tostring(k) end table.sort(r) return r
----
local t={} for i=1,50 do t["k"..i]=i end for i=1,50,2 do t["k"..i]=nil end for i=60,70 do t["k"..i]=i end local r={} for k,v in pairs(t) do r[#r+1]=k end table.sort(r) return r
----
local t={1,2,3,4,5,6,7,8} for i=8,3,-1 do t[i]=nil end t[20]=1 t.x=1 t.y=2 return {#t}
----
return {#{1,nil,3}, #{1,2,nil}, #{nil}, #{nil,2}, #{n=1,nil,nil,3}, #{1,2,3,nil,5,nil}}
----
local t={} t[1]=1 t[2]=2 t[4]=4 return #t == 2 or #t == 4
----
local t={1,2,3} t[5]=5 return #t
----
local t={1,2,3} t[#t]=nil return #t
----
local t={} for i=1,10 do t[i]=i end t[5]=nil return #t
----
local t={} for i=1,16 do t[i]=i end for i=9,16 do t[i]=nil end return #t
----
local t={10,20,30,nil,50,nil,nil,80} t[9]=90 return {#t}
----
local t={unpack({1,2,3})} return #t
----
local t={1,2,unpack({1,nil,3})} return #t
----
local t={(unpack({1,2,3}))} return t
----
local t = {} for i=1,120 do t[i]=i end return {#t, unpack(t, 100, 105)}
----
return {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55}
----
local a,b,c = (function() return 1,2 end)() return {a,b,tostring(c)}
----
local a <const> = 1
----
local t = {1,2} local i = 1 i, t[i] = i+1, 20 return {i, t[1], t[2]}
----
local a, b = 1, 2 a, b = b, a return {a, b}
----
local a, b, c = 1 return {a, tostring(b), tostring(c)}
----
local t = {} t.a, t.b = 1 return {t.a, tostring(t.b)}
----
local function f(...) return ... end return {f(1,2,3), f(4,5)}
----
local function f(...) local a, b = ... return b, a end return {f(1,2,3)}
----
local function f(...) return arg.n end return f(1,2,3)
----
local function f(...) local x = ... return tostring(arg) end return f(1,2,3)
----
local function f(a, ...) return select("#", ...), a end return {f(1,nil,nil)}
----
local t = {} function t:add(n) self.n = (self.n or 0) + n return self end return t:add(1):add(2).n
----
local t = {} function t.f(x) return x end return t.f(3)
----
local fs = {} for i=1,3 do fs[i] = function() i = i + 1 return i end end return {fs[1](), fs[1](), fs[2](), fs[3]()}
----
local fs = {} local i = 1 while i <= 3 do local j = i fs[i] = function() return j end i = i + 1 end return {fs[1](), fs[2](), fs[3]()}
----
local fs = {} local i = 0 repeat local j = i fs[#fs+1] = function() return j end i = i + 1 until j >= 2 return {fs[1](), fs[2](), fs[3]()}
----
local function counter() local n = 0 return function() n = n + 1 return n end, function() return n end end local inc, get = counter() inc() inc() return get()
----
local function fib(n) if n < 2 then return n end return fib(n-1) + fib(n-2) end return fib(15)
----
local function loop(n) if n == 0 then return "done" end return loop(n-1) end return loop(100000)
----
local function f() return f() + 1 end return f()
----
local function f() return 1 + f() end return {pcall(f)}
----
local t = setmetatable({}, {__index = function(t,k) return t[k] end}) return t.x
----
local function f(n) return pcall(f, n) end return 1
----
local f f = function(n) local ok, e = pcall(f, n+1) if ok then return e end return n end return f(1)
----
local n = 0 while true do n = n + 1 if n > 5 then break end end return n
----
local n = 0 repeat local m = n n = n + 1 until m == 3 return n
----
do local x = 1 end return x
----
local x = 1 do local x = 2 end return x
----
if nil then return 1 elseif false then return 2 else return 3 end
----
return 1 and 2
----
return nil or "x"
----
return false or nil
----
return not nil == true
----
return {2^3^2, -2^2, 7%3, -7%3, 7%-3, 5.5%2, 1e308*10 == 1/0, 2^0.5 == math.sqrt(2)}
----
return {tostring(7/2), tostring(1e15), tostring(1e14), tostring(123456789012345), tostring(0.1), tostring(1/3), tostring(100), tostring(-1.5e-10), tostring(2^63)}
----
return tostring(0/0)..tostring(-(0/0))..tostring(1/0)..tostring(-1/0)
----
return tostring(-0)
----
return tostring(0)..tostring(-0)
----
return tostring(-0)..tostring(0)
----
return 1 .. 2
----
return 1.5 .. "|" .. 1e100 .. "|" .. -0.1
----
return "0x10"+0
----
return {"10"+1, "0x1p4"+0, " 5 "*2, "1e2"+0, ".5"*2, "5."+0}
----
return "10\0x"+1
----
return tostring(tonumber("inf"))..tostring(tonumber("-nan"))..tostring(tonumber("nan"))
----
return {tonumber("0x10"), tonumber("10",36), tonumber("zz",36), tonumber("ff",16), tonumber("0xff",16), tonumber("777",8), tonumber("-ff",16) == 2^64-255, tostring(tonumber("8",8)), tostring(tonumber("")), tostring(tonumber(" ")), tostring(tonumber("1 2")), tostring(tonumber("1_0")), tostring(tonumber("0b1")), tostring(tonumber({})), tostring(tonumber("1e"))}
----
return tonumber()
----
return tonumber("1",1)
----
return tonumber({},16)
----
return {3 % math.huge == 3, tostring(-3 % math.huge), tostring(5 % 0)}
----
return 0x7fffffffffffffff
----
return 1e
----
return 3x
----
return 0x
----
return 1..2
----
return .5 + 5.
----
return {math.floor(-1.5), math.ceil(-1.5), math.abs(-2), math.max(1,5,3), math.min(4,2,8), math.fmod(7,3), math.fmod(-7,3), math.mod(7,3), math.pow(2,10), math.sqrt(16)}
----
return {math.floor(math.log10(1000)), math.floor(math.pow(10,15)/1e15), math.frexp(8), math.ldexp(1,4), math.modf(3.7)}
----
return {tostring(math.modf(-3.7)), tostring(select(2,math.modf(1/0))), tostring(math.pi), tostring(math.huge), math.deg(math.pi), tostring(math.rad(180)), math.cosh(0), math.exp(0)}
----
math.randomseed(-5) return {math.random(1), math.random(7,7), math.random(-10,10) >= -10, math.random() < 1}
----
return math.random(0)
----
return math.random(2,1)
----
return math.random(1,2,3)
----
return math.max()
----
return math.floor("x")
----
return math.floor("3.7")
----
return {string.byte("abc"), string.byte("abc",2), string.byte("abc",-1), string.byte("abc",1,-1), string.byte("",1)}
----
return {string.char(97,98,0,99), string.char()}
----
return string.char(256)
----
return string.char(-1)
----
return {("abc"):sub(2), ("abc"):sub(-2,-1), ("abc"):sub(0), ("abc"):sub(2,1), ("abc"):sub(-100,100), ("abc"):sub(4)}
----
return {("aBc"):upper(), ("aBc\196"):lower(), ("abc"):rep(3), ("abc"):rep(0), ("abc"):rep(-1), ("abc"):reverse(), ("abc"):len(), #"a\0b"}
----
return string.rep()
----
local s="a" return s:rep({})
----
return ("x"):rep()
----
return string.rep("x")
----
local r = string.rep return r()
----
local t = {string.rep} return t[1]()
----
return string.sub()
----
return ("x").rep({})
----
return string.len()
----
return {string.find("hello world","o"), string.find("hello","l+"), string.find("hello","xyz"), string.find("hello",""), string.find("hello","",10), string.find("a.b",".",1,true), string.find("a+b","+",1,true), string.find("hello","(l)(l)")}
----
return {string.find("abc","b",-1), string.find("abc","b",-2), string.find("","" ), string.find("abc","^b"), string.find("abc","^a"), string.find("abc","c$"), string.find("a$c","$c")}
----
return {string.match("key=value","(%w+)=(%w+)"), string.match("abc","()b()"), string.match("  x  ","^%s*(.-)%s*$"), string.match("2024-01-02","(%d+)-(%d+)-(%d+)"), string.match("[[x]]","%[%[(.-)%]%]"), string.match("f(a(b)c)d","%b()"), string.match("THE (quick) fox","%f[%a]%a+%f[%A]"), string.match("abab","(ab)%1")}
----
return {string.gsub("hello","l","L"), string.gsub("hello","l","L",1), string.gsub("hello","","-"), string.gsub("abc","%w","%0%0"), string.gsub("abc","(a)(b)","%2%1"), string.gsub("hello world","%w+",{hello="HI"}), string.gsub("abc","b",function(x) return x:upper() end), string.gsub("abc","b",function() end), string.gsub("abc",".",{a=1,b=true and "x"}), string.gsub("a,b",",","%%")}
----
return string.gsub("abc","a",{a={}})
----
return string.gsub("abc","a","%2")
----
return string.gsub("abc","a")
----
return {string.gsub("abc","(","x")}
----
return {string.gsub("abc","[a","x")}
----
return {string.gsub("abc","%","x")}
----
return {string.gsub("abc",")","x")}
----
return {string.gsub("abc","%1","x")}
----
return {string.gsub("abc","%f","x")}
----
return {string.gsub("abc","%b","x")}
----
return {string.gsub("abc","a","%")}
----
return {string.find("a]b","[]]"), string.find("a^b","[%^]"), string.find("a-b","[a%-]",2), string.find("x9","[^%d]"), string.find("ab-c","[b-]"), string.find("\0a","%z"), string.find("ABC","%u%U?")}
----
local t={} for w in string.gmatch("one two three","%a+") do t[#t+1]=w end return t
----
local t={} for k,v in string.gmatch("a=1, b=2","(%w+)=(%w+)") do t[#t+1]=k t[#t+1]=v end return t
----
local t={} for p in string.gmatch("abc","()") do t[#t+1]=p end return t
----
local t={} for w in string.gfind("a b","%a") do t[#t+1]=w end return t
----
return {string.format("%d %5d|%-5d|%05d|%+d|% d", 3, 42, 42, 42, 42, 42), string.format("%x %X %#x %o %u", 255, 255, 255, 8, 7), string.format("%s %10s|%-10s|%.2s", "a", "b", "c", "defg"), string.format("%c%c", 97, 98), string.format("%%"), string.format("%q", 'a "b" \\ \n \r \0 c')}
----
return {string.format("%f %.2f %10.3f|%-10.1f|%e %.3E %g %G", 1.5, 1.005, 3.14159, 2.5, 12345.678, 0.00012, 1e20, 1e-10), string.format("%g %g %g", 100000, 1000000, 0.1), string.format("%.14g|%.17g|%.0f|%5.1f|", 0.1, 0.1, 0.5, 2.25), string.format("%#g %#x %#o %+.2e", 1, 0, 8, 5)}
----
return {string.format("%d", 3.99), string.format("%d", -3.99), string.format("%d", "0x10"), string.format("%x", -1), string.format("%u", -1), string.format("%d", 2^53), string.format("%5.3d|%.0d|%5.3x", 7, 0, 255), string.format("%i", 5)}
----
return {string.format("%s %s %s", 1, 1.5, "x"), string.format("%5s|%.1f|%g|%g", "a\0b", 1/0, -1/0, 1e15), string.format("%05d|%05.1f|%-5d|%+5d", -42, -1.5, -3, 7)}
----
return string.format("%s", nil)
----
return string.format("%s")
----
return string.format("%d", "x")
----
return string.format("%y", 1)
----
return string.format("%", 1)
----
return string.format("%0000000d", 1)
----
return string.format("%123d", 1)
----
return string.format("%.123d", 1)
----
return string.format()
----
return {table.concat({1,2,3},","), table.concat({},","), table.concat({"a","b","c"},"-",2,3), table.concat({1.5,"x"}), table.concat({1,2,3},",",3,2), table.concat({1,2,3}, 0)}
----
return table.concat({1,{},3})
----
return table.concat({1,2},",",1,3)
----
return table.concat(1)
----
local t={1,2,3} table.insert(t,4) table.insert(t,1,0) table.insert(t,3,"x") return t
----
local t={1,2,3} table.insert(t,6,"x") return {#t, tostring(t[6])}
----
table.insert({},1,2,3)
----
table.insert({})
----
table.insert(nil,1)
----
local t={1,2,3,4} local r={table.remove(t), table.remove(t,1), tostring(table.remove(t,9)), #t} return r
----
return {table.remove({})}
----
local t={5,2,8,1,9,3} table.sort(t) return t
----
local t={5,2,8,1,9,3} table.sort(t, function(a,b) return a>b end) return t
----
local t={"b","a","C","B"} table.sort(t) return t
----
local t={3,"a",1} table.sort(t) return t
----
local t={{},{}} table.sort(t)
----
local t={3,1,2} table.sort(t, 5)
----
local t={} for i=1,50 do t[i]=(i*7919)%101 end table.sort(t, function(a,b) return a%10 < b%10 end) for i=1,50 do t[i]=t[i]%10 end return t
----
return {table.maxn({1,2,nil,4,[10]=1}), table.getn({1,2,3})}
----
table.setn({},1)
----
local t={} table.foreachi({1,2,3}, function(i,v) t[#t+1]=i*v end) return t
----
return table.foreach({a=1}, function(k,v) return k end)
----
return {type(nil), type(1), type("x"), type({}), type(type), type(cjson.null)}
----
return type()
----
return {select("#"), select("#",nil,nil), select(2,"a","b","c"), select(-1,"a","b"), select(5,"a")}
----
return select(0,1)
----
return select(-5,1)
----
return select()
----
return {unpack({1,2,3}), unpack({1,2,3},2), unpack({1,2,3},2,2), unpack({},1,2)}
----
return unpack({},1,1e7)
----
return unpack()
----
return {assert(1,2)}
----
return assert(false)
----
return assert(nil,"msg")
----
return assert()
----
return assert(false,{err="t"})
----
return {rawequal(1,1), rawequal({}, {}), rawget({a=1},"a"), rawset({},"a",1).a, rawequal("a","a")}
----
rawget(1,2)
----
return tostring()
----
return {tostring(nil), tostring(true), tostring("x"), tostring(12), tostring(setmetatable({},{__tostring=function() return "T" end}))}
----
return string.sub(tostring({}),1,9)
----
return string.sub(tostring(print or redis.call),1,12)
----
return getmetatable("").__index == string
----
return getmetatable("x").__index("abc")
----
getmetatable("").__index = 1
----
return getmetatable(setmetatable({},{__metatable="locked"}))
----
setmetatable(setmetatable({},{__metatable="locked"}),{})
----
setmetatable({})
----
setmetatable({},1)
----
setmetatable(1,{})
----
local mt = {__add=function(a,b) return "add" end, __concat=function(a,b) return "cat" end, __call=function(self,x) return x end, __len=function() return 9 end, __unm=function() return "neg" end, __eq=function() return true end, __lt=function() return true end, __le=function() return false end} local a, b = setmetatable({},mt), setmetatable({},mt) return {a+1, 1+a, a..1, 1 ..a, a("hey"), #a, -a, a==b, a<b, a<=b, a>b, a~=b, a>=b}
----
local a = setmetatable({},{__lt=function() return true end}) local b = setmetatable({},getmetatable(a)) return {a<=b, a<b}
----
local a = setmetatable({},{__lt=function() return true end}) return a < 1
----
local log = {} local t = setmetatable({}, {__newindex=function(t,k,v) rawset(t,k,v*2) end, __index=function(t,k) return k.."!" end}) t.x = 5 return {t.x, t.y}
----
local base = {greet=function(self) return "hi "..self.name end} local o = setmetatable({name="x"},{__index=base}) return o:greet()
----
local t = setmetatable({},{__newindex={}}) t.x = 1 return tostring(rawget(t,"x"))
----
local t = setmetatable({},{__index=5}) return t.x
----
local t = setmetatable({},{__call=5}) return t()
----
local t = setmetatable({},{__call=function(self, a, b) return a, b end}) return {t(1,2)}
----
string.x=1
----
setmetatable(string,{})
----
setmetatable(_G,{})
----
rawset(_G,"x",1)
----
_G.x = 1
----
return _G.foo
----
return rawget(_G,"foo")
----
return {_G._G == _G, _G.KEYS[1], _G["redis"] == redis}
----
KEYS[1]="x" return KEYS
----
KEYS={} return KEYS
----
table.insert(KEYS,"z") return #KEYS
----
redis.call = 1
----
table.insert(string, 1)
----
cjson.encode = 5
----
return print
----
return os
----
return getfenv
----
return dofile
----
return require
----
return newproxy
----
return debug
----
return _VERSION
----
return redis.REDIS_VERSION_NUM >= 458752
----
return {loadstring("return 1+1")()}
----
return {loadstring("return 1+")}
----
local f, e = loadstring("return 1+") return e
----
local f, e = loadstring("x=", "=chunk") return e
----
local f, e = loadstring("x=", "@file.lua") return e
----
local f, e = loadstring("x=\ny=") return e
----
local f, e = loadstring(string.rep("x", 100)) return e
----
return loadstring("return x")()
----
return loadstring("return KEYS[1]")()
----
loadstring("error('inner')")()
----
local n = 0 return load(function() n = n + 1 if n == 1 then return "return " elseif n == 2 then return "42" end end)()
----
return {load(function() return 5 end ~= nil and function() return {} end)}
----
load(5)
----
local text = cjson.encode({a=1,b={1,2,3},c="x"}) local t = cjson.decode(text) return {#text, t.a, t.b, t.c}
----
return {cjson.encode({}), cjson.encode({{}}), cjson.encode({1,2,3}), cjson.encode({[1]=1,[3]=3}), cjson.encode("a\"b\\c/d\n\r\t\b\f\0\127é"), cjson.encode(true), cjson.encode(nil), cjson.encode(cjson.null), cjson.encode(0.1), cjson.encode(1e20), cjson.encode(-0), cjson.encode(123456789012), cjson.encode({[1.5]="x"}), cjson.encode({x=cjson.null})}
----
return cjson.encode({[100]=1})
----
return cjson.encode(1/0)
----
return cjson.encode(function() end)
----
return cjson.encode({[{}]=1})
----
return cjson.encode()
----
return cjson.encode(1,2)
----
local t = {} for i=1,2000 do t = {t} end return cjson.encode(t)
----
return cjson.encode({a={b={c={1,2,{d=false}}}}})
----
local t, r = {}, {} for i=1,30 do t["f"..i]=i end for part in cjson.encode(t):gmatch("[^{},]+") do r[#r+1]=part end table.sort(r) return r
----
return cjson.decode("{")
----
return cjson.decode("")
----
return cjson.decode("[1,2")
----
return cjson.decode("[1,2,]")
----
return cjson.decode("{1:2}")
----
return cjson.decode("{\"a\" 2}")
----
return cjson.decode("{\"a\":2,}")
----
return cjson.decode("{\"a\":}")
----
return cjson.decode("[1] x")
----
return cjson.decode("nul")
----
return cjson.decode("\"abc")
----
return cjson.decode("\"a\\xb\"")
----
return cjson.decode("\"\\u12\"")
----
return cjson.decode("\"\\ud800\"")
----
return cjson.decode("-")
----
return cjson.decode("[1,2,3.5,\"x\",null,true,false]")
----
return cjson.decode("[1e2,-5,0x10,+7,1.5e-1,01]")
----
return tostring(cjson.decode("[inf]")[1])..tostring(cjson.decode("[nan]")[1])..tostring(cjson.decode("[-Infinity]")[1])
----
local t = cjson.decode("{\"a\":{\"b\":[1,{\"c\":\"d\"}]},\"x\":null}") return {t.a.b[2].c, t.x == cjson.null, t.a.b[1]}
----
return cjson.decode("\"\\u00e9\\u20ac\\ud83d\\ude00\\n\\/\"")
----
return cjson.decode(string.rep("[",2000))
----
return cjson.decode("\0\0")
----
return cjson.decode("[1]\0x")
----
return cjson.decode(5)
----
return cjson.decode({})
----
return cjson.decode()
----
return {cjson.encode(cjson.decode("{\"x\":{\"w\":[]}}")), cjson.encode(cjson.decode("{\"v\":{}}"))}
----
foo bar
----
return "
----
return "abc
----
return 'a\300b'
----
return [[abc
----
--[[ abc
----
return [=x
----
return [[a[[b]]
----
return {[[
x
y]], [==[a]]b]==], "a\
b", 'it\'s', "\65\066\0a", "\x"}
----
-- comment
--[[ long
comment ]] return --[==[ x ]==] 1
----
return }
----
if true then
----
if true then return 1
----
while true do
----
for i=1 do end
----
for i do end
----
for 1=1,2 do end
----
function
----
function f( end
----
function f(a,) end
----
function f(...,a) end
----
local function f(1) end
----
local x = 
----
local 1
----
local
----
return 1 2
----
break
----
while true do break return 1 end
----
do break end
----
x
----
x.y
----
x.1
----
f() = 1
----
a, f() = 1
----
(a) = 1
----
a = 1, = 2
----
return f(
----
return {1,2
----
return {
1,
2
----
return (1
----
return a.
----
return a:b
----
return function() return ... end
----
return @
----
return $x
----
return ~1
----
return 1 ~= 2
----
return 1 != 2
----
return !1
----
local a = b
(c)()
----
x = 1 = 2
----
repeat until
----
return 1;;
----
;
----
return 1;
----
local x = 1; local y = 2; return x + y
----
goto = 1
----
local goto = 1 return goto
----
return "\u{41}"
----
return 5 // 2
----
return 5 & 2
----
return 0x1p4
----
return and
----
end
----
until
----
return not
----
return -
----
return #
----
return {a=}
----
return {[1]}
----
return {[1=2}
----
return ...
----
return {...}
----
local a = {...} return #a
----
#!lua
return 1
----
#!lua flags=no-writes
return redis.call("set","a",1)
----
#!lua flags=no-writes
return redis.pcall("set","a",1)
----
#!lua flags=no-writes
return redis.call("get",KEYS[1])
----
#!lua flags=no-writes,allow-oom,allow-stale,no-cluster,allow-cross-slot-keys
return 1
----
#!lua flags=
return 1
----
#!lua flags=foo
return 1
----
#!lua flags=no-writes,
return 1
----
#!lua name=x
return 1
----
#!lua flags
return 1
----
#!foo
return 1
----
#!/usr/bin/lua
return 1
----
#!lua
----
#!
return 1
----
#!lua "flags=no-writes"
return 1
----
#!lua "flags
return 1
----
#! lua
return 1
----
#!lua
return x
----
#!lua

error("line")
----
local t = struct and 1 return t
----
return {collectgarbage("step") ~= nil, collectgarbage(), type(collectgarbage("count")), type(gcinfo())}
----
collectgarbage("x")
----
local a = 1
local b = a.x.y
return b
----
local t = {
  a = 1,
  b = nosuch,
}
return t
----
local x = redis.call("get",
  KEYS[1]) +
  {}
return x
----
redis.call("nosuch",
  1)
----
local function f(
  a, b)
  return a + b
end
return f(1,
  nil)
----
return ("x"):bad()
----
local t = {} ; t.x = 1 ; t["y z"] = 2 ; t[1.5] = 3 ; t[-1] = 4 ; local r = {} for k, v in pairs(t) do r[#r+1] = tostring(k) .. "=" .. v end table.sort(r) return r
----
local t = {} t[2^53] = "a" t[2^53+1] = "b" return t[2^53]
----
local t = {} t[1] = "int" t[1.0] = "float" t["1"] = "string" return {t[1], t["1"], #t}
----
local t = {10,20,30} t[2.0] = 99 return t
----
local a = {} a[a] = a return a[a][a] == a
----
local s = 0 for i, v in ipairs({1,2,3}) do s = s + i * v end return s
----
local parts = {} for part in string.gmatch("a:b:c", "([^:]+)") do parts[#parts+1] = part end return parts
----
return string.format("%s:%d", KEYS[1], ARGV[2])
----
return ARGV[2] + 1
----
return ARGV[2] .. 1
----
return tonumber(ARGV[3])
----
return tonumber(ARGV[3]) * 2
----
return ARGV[9]
----
return {#KEYS, #ARGV, KEYS[1], ARGV[1], tostring(KEYS[3])}
----
return {unpack(KEYS), unpack(ARGV)}
----
local n = redis.call("incr","counter") redis.call("incrby","counter",5) return {n, redis.call("get","counter"), tonumber(redis.call("get","counter")) + 1}
----
redis.call("hset","h","f","v") return redis.call("hgetall","h")
----
redis.call("rpush","l","a","b","c") return redis.call("lrange","l",0,-1)
----
return redis.call("type",KEYS[1])
----
return redis.call("type",KEYS[1])["ok"]
----
return redis.call("type",KEYS[1]) == "string"
----
return redis.call("exists",KEYS[1]) == true
----
return redis.call("get","none") == nil
----
return not redis.call("get","none")
----
return redis.call("ttl","none")
----
redis.call("expire",KEYS[1],100) redis.call("persist",KEYS[1]) return redis.call("ttl",KEYS[1])
----
local r = redis.call("config","get","maxmemory") return r
----
return redis.call("eval","return 1",0)
----
return redis.call("multi")
----
return redis.call("subscribe","x")
----
return redis.call("GeT",KEYS[1])
----
return redis.call("get ",KEYS[1])
----
return #redis.call("time")
----
return redis.call("ping")
----
return redis.call("echo",{})
----
return redis.call("echo","a\0b")
----
return pcall(redis.pcall,"nosuch")
----
return {type(redis.pcall("nosuch")), redis.pcall("nosuch").err}
----
redis.pcall("nosuch").x.y = 1
----
if redis.call("set",KEYS[1],"v")["ok"] then return 1 end
----
if redis.call("set",KEYS[1],"v") == "OK" then return 1 else return 0 end
----
local ok = redis.call("set",KEYS[1],"v") return ok
----
return {redis.call("set",KEYS[1],"v"), redis.call("get",KEYS[1])}
----
local a = 0 for i = 1, 100 do a = a + i end return a
----
return math.floor(3.7)
----
return string.len(KEYS[1])
----
local x = "a" x = x .. x .. x return x
----
return nil == false
----
return "x" == x
----
return #ARGV[1]
----
return {["ok"]="yes"}
----
return {["err"]="ERR no"}
----
local function f() end return f()
----
local function f() end return {f(), 1}
----
local function f() end return {1, f()}
----
local function f() return nil end return {1, f(), 2}
----
return ("%d"):format(7)
----
return #"abc" + 1
----
return -2 ^ 2
----
return 2 ^ -1
----
return not 1 == 2
----
return 1 < 2 == true
----
return "a" .. "b" == "ab"
----
return 1 + 2 .. ""
----
return {10 == "10", 0 == -0, "abc" < "abd"}
----
local a <close> = 1
----
local t = {} t.t = t return tostring(t.t.t == t)
----
local _ENV = {} return 1
----
return select('#', string.byte(("x"):rep(100), 1, -1))
----
return string.byte(("x"):rep(10000), 1, -1)
----
local t = {} for i = 1, 300 do t[i] = i end return select('#', unpack(t))
----
local f, e = loadstring("x=", "@"..string.rep("n", 100)) return e
----
local f, e = loadstring("x=", "="..string.rep("n", 100)) return e
----
local f, e = loadstring("x=", "") return e
----
local f, e = loadstring("x=\ry=") return e
----
return {err="\r\n\r\nboth\r\n"}
----
return {pcall(pcall)}
----
return {pcall(pcall, error)}
----
return {pcall(pcall, error, "x")}
----
return {tostring(2^31), tostring(-2^31), tostring(1e100), tostring(123456.789e3)}
----
return string.format("%10.4s|", "abcdefgh")
----
local t = {} for i = 1, 10 do t[#t+1] = i % 3 end table.sort(t) return table.concat(t)
----
return {("x"):rep(3, ","), ("abc"):byte(1, -1)}
----
local a, b = string.gsub("hello world", "o", "0") return {a, b}
----
return {string.find("abc [x] def", "[", 1, true), string.find("abc", "[a-c]+"), string.find("a\nb", "\n")}
----
return {string.match("  trim  ", "^%s*(.-)%s*$")}
----
return (("x"):gsub("x", "%%1"))
----
local t = {} t[1]=1 t[3]=3 t[2]=2 t[4]=4 local r = {} for k in pairs(t) do r[#r+1]=k end return r
----
local t = {1,2,3} for k in pairs(t) do t[k] = nil end return {next(t) == nil, #t}
----
local t = {a=1,b=2,c=3} for k in pairs(t) do t[k] = nil end return next(t) == nil
----
return tostring(1e15) .. tostring(1e16) .. tostring(123456789012345678)
----
return 2^53 == 2^53 + 1
----
return {1e308 * 10, -1e308 * 10}
----
local s = "" for i = 1, 5 do s = s .. i .. "," end return s
----
local x <const> = 5 return x
----
return {math.huge, -math.huge}
----
return redis.call("set", KEYS[1], true)
----
return redis.call("set", KEYS[1], {1})
----
return redis.call("set", KEYS[1], "v", "px", 1000.7)
----
return redis.call("set", KEYS[1], "v", "px", 1000)
----
return redis.call("set", KEYS[1], "v", "px", "x")
----
return redis.call("pexpire", KEYS[1], 0.5)
----
return redis.call("append", KEYS[1], 3.0)
----
redis.call("append", KEYS[1], 3.5) return redis.call("get", KEYS[1])
----
local r = {} for _, f in ipairs({"log", "acos", "asin", "sqrt", "sin", "cos", "tan", "floor", "exp", "abs", "tanh"}) do for _, x in ipairs({-2, 2, 1/0, -1/0, 0/0, -(0/0)}) do r[#r+1] = f .. tostring(math[f](x)) end end return r
----
local r = {} for _, f in ipairs({"fmod", "pow", "atan2", "max", "min", "mod", "ldexp"}) do for _, x in ipairs({-2, 0, 1/0, 0/0}) do for _, y in ipairs({-2, 0, 1/0, 0/0, 0.5}) do r[#r+1] = f .. tostring(math[f](x, y)) end end end return r
----
local r = {} for _, x in ipairs({-2, 0, 1/0, 0/0}) do for _, y in ipairs({-2, 0, 1/0, 0/0, 0.5}) do r[#r+1] = tostring(x+y)..tostring(x-y)..tostring(x*y)..tostring(x/y)..tostring(x%y)..tostring(x^y)..tostring(-x) end end return r
----
local r = {} for i = -20, 20 do r[#r+1] = tostring(10^i) .. tostring(3^i) .. tostring(2.5^i) .. tostring(math.exp(i)) .. tostring(math.sin(i)) .. tostring(math.log(math.abs(i)+0.5)) end return r
----
local ok, e, more = pcall(error, {err = 5}) return {tostring(ok), type(e), tostring(more), select("#", pcall(error, {err = "x"}))}
----
local ok, e, more = pcall(error, {1}) return {tostring(ok), type(e), tostring(more), select("#", pcall(error, {}))}
----
local ok, e, more = pcall(error, {err = true}) return {tostring(ok), type(e), tostring(more)}
----
local n = 0 local f, e = load(function() n = n + 1 return n == 1 and "x y" or nil end) return {tostring(f), e, n, type(gcinfo()), tostring(gcinfo() > 0)}
----
return {string.format("%.13g", math.log(5e-300)), string.format("%.13g", math.log10(1e-300)), string.format("%.13g", 1.1 ^ 100), tostring(math.log10(-2)), tostring(math.log10(1/0)), math.log10(1e15)}
